"""Decision trees as plain arrays: grown by scikit-learn, kept and evaluated here, so that models need no pickle."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

# Sparse rows are made dense this many values at a time, so that memory stays bounded.
VALUES_PER_BLOCK = 1 << 22
# Sparse data of no more values than this (256 MB) are made dense to grow trees on.
DENSE_UP_TO = 1 << 26


@dataclass
class Trees:
    """Several trees, their nodes one after the other.

    A row goes left where its feature is at most the threshold; leaves have no children (-1).
    """

    root: NDArray[np.int64]  # (n_trees,) index of the first node of each tree
    left: NDArray[np.int64]  # (n_nodes,) index of the child, or -1
    right: NDArray[np.int64]
    feature: NDArray[np.int64]
    threshold: NDArray[np.float64]
    value: NDArray[np.float64]  # (n_nodes,) what a row that ends here gets

    @classmethod
    def collect(cls, grown: Sequence[Any], values: Sequence[NDArray]) -> Trees:
        """Take the arrays of scikit-learn's ``tree_`` objects, with one value for each of their nodes."""
        counts = [tree.node_count for tree in grown]
        root = np.concatenate([[0], np.cumsum(counts)[:-1]]).astype(np.int64)
        shift = np.repeat(root, counts)

        def children(name: str) -> NDArray[np.int64]:
            own = np.concatenate([getattr(tree, name) for tree in grown]).astype(np.int64)
            return np.where(own < 0, -1, own + shift)

        return cls(
            root,
            children("children_left"),
            children("children_right"),
            np.concatenate([tree.feature for tree in grown]).astype(np.int64),
            np.concatenate([tree.threshold for tree in grown]).astype(np.float64),
            np.concatenate(values).astype(np.float64),
        )

    def sums(self, x: Any) -> NDArray[np.float64]:
        """(n_rows,) sum over the trees of the value of the leaf that each row falls into."""
        from bagwise.instance_space._tree_loops import add_leaf_values

        total = np.zeros(x.shape[0])
        step = max(1, VALUES_PER_BLOCK // max(x.shape[1], 1))
        for start in range(0, x.shape[0], step):
            block = x[start : start + step]
            add_leaf_values(
                as_tree_input(block.toarray() if sparse.issparse(block) else block),
                self.root, self.left, self.right, self.feature, self.threshold, self.value,
                total[start : start + step],
            )  # fmt: skip
        return total


def as_tree_input(x: Any) -> Any:
    """Rows as scikit-learn's trees read them: float32, C-contiguous.

    CSR rows become dense where that takes little memory: it is faster, and scikit-learn chooses between equally good
    splits otherwise in sparse data. Larger ones stay CSR.
    """
    if sparse.issparse(x):
        if x.shape[0] * x.shape[1] > DENSE_UP_TO:
            return sparse.csr_matrix(x, dtype=np.float32)
        x = x.toarray()
    return np.ascontiguousarray(x, dtype=np.float32)
