"""What this installation is made of: versions, devices and folders, for `bagwise info`."""

from __future__ import annotations

import os
import platform
import re
from importlib.metadata import PackageNotFoundError, requires, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

EXTRA = re.compile(r"""extra\s*==\s*['"](\w+)['"]""")


def collect() -> dict[str, dict[str, Any]]:
    """What this installation is made of, what it can compute on, and where it keeps things."""
    return {"versions": versions(), "devices": devices(), "folders": folders()}


def versions() -> dict[str, str | None]:
    """The version of bagwise and of everything it names as a dependency; None where that is not installed."""
    found = {"bagwise": _version("bagwise"), "python": platform.python_version()}
    found["system"] = f"{platform.system()} {platform.release()} {platform.machine()}"
    return found | {name: _version(name) for name in sorted(dependencies())}


def devices() -> dict[str, Any]:
    """Cores that this process may use, graphics cards that torch sees, and what ONNX Runtime can run on."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {"CPU cores": cores, "CUDA (torch)": _cuda(), "ONNX Runtime": _onnx_providers()}


def folders() -> dict[str, dict[str, Any]]:
    """Every folder that bagwise keeps things in or reads from: its path, its bytes, the variable that moves it."""
    from bagwise._utils.caches import cache_folder

    data = os.environ.get("BAGWISE_DATA")
    return {
        "cache (networks, downloads)": _folder(cache_folder(), "BAGWISE_CACHE", "**/*"),
        "compiled loops": _folder(*_compiled_loops()),
        "data sets for bench": _folder(Path(data) if data else None, "BAGWISE_DATA", ""),
    }


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def dependencies() -> dict[str, str]:
    """The packages that bagwise's own metadata asks for, and for each the first extra that brings it, or none."""
    try:
        wanted = requires("bagwise") or []
    except PackageNotFoundError:  # run from a source tree that nobody installed
        return {}
    found: dict[str, str] = {}
    for requirement in wanted:
        name, extra = re.split(r"[\s\[<>=!~;]", requirement, maxsplit=1)[0], EXTRA.search(requirement)
        found.setdefault(name, extra.group(1) if extra else "")
    return found


def _cuda() -> list[str] | str | None:
    if find_spec("torch") is None:
        return None
    try:
        import torch

        return [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
    except (ImportError, OSError, RuntimeError) as error:  # what is broken is worth knowing, and no reason to stop
        return f"torch does not work: {error}"


def _onnx_providers() -> list[str] | str | None:
    if find_spec("onnxruntime") is None:
        return None
    try:
        import onnxruntime

        return [name.removesuffix("ExecutionProvider") for name in onnxruntime.get_available_providers()]
    except (ImportError, OSError, RuntimeError) as error:
        return f"onnxruntime does not work: {error}"


def _compiled_loops() -> tuple[Path, str, str]:
    """Where numba keeps machine code of bagwise: beside the source, or, where that cannot be written, elsewhere."""
    from bagwise.rmi import loops

    package = Path(__file__).parent
    compiled: Any = loops.dense_steps
    kept = Path(compiled.stats.cache_path)
    if package in kept.parents:
        return package, "NUMBA_CACHE_DIR", "**/__pycache__/*.nb[ic]"
    return kept.parent, "NUMBA_CACHE_DIR", "**/*.nb[ic]"


def _folder(path: Path | None, variable: str, counted: str) -> dict[str, Any]:
    size = None
    if path is not None and counted:
        size = sum(file.stat().st_size for file in path.glob(counted) if file.is_file())
    return {"path": None if path is None else str(path), "bytes": size, "variable": variable}


def told(facts: dict[str, dict[str, Any]]) -> str:
    """The facts as text, with the extra that brings what is not installed."""
    extras, lines = dependencies(), []
    for title, rows in facts.items():
        lines.append(title)
        for name, value in rows.items():
            hint = f": pip install 'bagwise[{extras[name]}]'" if value is None and extras.get(name) else ""
            lines.append(f"  {name:34} {_told(value)}{hint}")
    return "\n".join(lines)


def _told(value: Any) -> str:
    if value is None:
        return "not installed"
    if isinstance(value, dict):
        size = "" if value["bytes"] is None else f", {value['bytes'] / 1e6:.1f} MB"
        return f"{value['path'] or 'not set'}{size} ({value['variable']} sets it)"
    if isinstance(value, list):
        return ", ".join(value) or "none"
    return str(value)
