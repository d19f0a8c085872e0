"""Arrays and CSR matrices, treated alike."""

from __future__ import annotations

from typing import Any

from scipy import sparse


def in_form_of(reference: Any, rows: Any) -> Any:
    """The rows as CSR matrix or as array, whichever the reference is."""
    if sparse.issparse(reference) == sparse.issparse(rows):
        return rows
    return rows.toarray() if sparse.issparse(rows) else sparse.csr_array(rows)
