"""The parts list of a wheel (CycloneDX 1.6, JSON): what it depends on, and the data and networks inside it.

Versions are those of constraints.txt, with which the release was tested; licences and the graph of dependencies come
from the packages that are installed. The same wheel and constraints give the same bytes.
"""

from __future__ import annotations

import hashlib
import json
import uuid
import zipfile
from collections.abc import Iterator
from datetime import UTC, datetime
from email.parser import Parser
from importlib.metadata import PackageNotFoundError, metadata, requires
from pathlib import Path, PurePosixPath
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

# Not written by us, by the folder in the wheel they lie in; the rest is under the project's own licence.
DATA_LICENCES = {
    "bagwise/datasets/data": "CC-BY-4.0",
    "bagwise/datasets/photos": "public domain or CC0-1.0, each in CREDITS.csv",
}
SOURCE = {".py", ".css", ".js", ".html", ".svg", ".md", ".txt", ".typed"}


def parts_list(wheel: Path, pins: dict[str, str], epoch: int) -> dict[str, Any]:
    """The CycloneDX document of a wheel.

    Parameters
    ----------
    wheel : Path
    pins : dict
        The tested version of every dependency, by canonical name.
    epoch : int
        Time of the release in seconds, as in SOURCE_DATE_EPOCH.
    """
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        about = Parser().parsestr(archive.read(name).decode())
        inside = list(_data_files(archive))
    requirements = [Requirement(line) for line in about.get_all("Requires-Dist", [])]
    core = closure([r for r in requirements if _applies(r, "")], pins)
    graph = closure(
        [r for r in requirements if any(_applies(r, e) for e in ["", *about.get_all("Provides-Extra", [])])], pins
    )
    me = f"pkg:pypi/bagwise@{about['Version']}"
    direct = sorted({canonicalize_name(r.name) for r in requirements})
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, me + digest)}",
        "version": 1,
        "metadata": {
            "timestamp": datetime.fromtimestamp(epoch, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "component": {
                "type": "library",
                "bom-ref": me,
                "name": "bagwise",
                "version": about["Version"],
                "purl": me,
                "licenses": [{"expression": about["License-Expression"]}],
                "hashes": [{"alg": "SHA-256", "content": digest}],
            },
        },
        "components": [_package(name, pins[name], "required" if name in core else "optional") for name in sorted(graph)]
        + inside,
        "dependencies": [{"ref": me, "dependsOn": [_purl(name, pins) for name in direct]}]
        + [
            {"ref": _purl(name, pins), "dependsOn": [_purl(n, pins) for n in needs]}
            for name, needs in sorted(graph.items())
        ],
    }


def closure(requirements: list[Requirement], pins: dict[str, str]) -> dict[str, list[str]]:
    """Every package that is needed, directly or not, with what it needs itself.

    What is not installed here has no known needs; what is pinned nowhere belongs to another system.
    """
    graph: dict[str, list[str]] = {}
    waiting = [(canonicalize_name(r.name), frozenset(r.extras)) for r in requirements]
    seen = set()
    while waiting:
        name, extras = item = waiting.pop()
        if item in seen or name not in pins:
            continue
        seen.add(item)
        try:
            lines = requires(name) or []
        except PackageNotFoundError:
            lines = []
        needs = [r for r in map(Requirement, lines) if any(_applies(r, extra) for extra in ["", *extras])]
        waiting += [(canonicalize_name(r.name), frozenset(r.extras)) for r in needs]
        found = {canonicalize_name(r.name) for r in needs} & pins.keys() - {name}
        graph[name] = sorted(found.union(graph.get(name, [])))
    return graph


def _applies(requirement: Requirement, extra: str) -> bool:
    return requirement.marker is None or requirement.marker.evaluate({"extra": extra})


def _purl(name: str, pins: dict[str, str]) -> str:
    return f"pkg:pypi/{name}@{pins[name]}"


def _package(name: str, version: str, scope: str) -> dict[str, Any]:
    purl = f"pkg:pypi/{name}@{version}"
    part: dict[str, Any] = {"type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl}
    part["scope"] = scope
    try:
        about = metadata(name)
    except PackageNotFoundError:
        return part
    if "License-Expression" in about:
        part["licenses"] = [{"expression": about["License-Expression"]}]
        return part
    classifiers = [line.split(" :: ")[-1] for line in about.get_all("Classifier", []) if line.startswith("License ::")]
    stated = (about.get("License") or "").strip()
    # Some packages put the whole text of their licence there.
    names = classifiers or ([stated] if stated and "\n" not in stated else [])
    if names:
        part["licenses"] = [{"license": {"name": name}} for name in names]
    return part


def _data_files(archive: zipfile.ZipFile) -> Iterator[dict[str, Any]]:
    """What is neither program nor text: data sets, pictures and weights of networks."""
    for name in sorted(archive.namelist()):
        path = PurePosixPath(name)
        if path.suffix in SOURCE or ".dist-info" in name:
            continue
        licence = next((text for place, text in DATA_LICENCES.items() if name.startswith(place)), "BSD-3-Clause")
        yield {
            "type": "machine-learning-model" if path.suffix == ".onnx" else "file",
            "bom-ref": name,
            "name": name,
            "hashes": [{"alg": "SHA-256", "content": hashlib.sha256(archive.read(name)).hexdigest()}],
            "licenses": [{"license": {"name": licence}}],
        }


def write_parts_list(path: Path, document: dict[str, Any]) -> None:
    """Write the document as text that is the same everywhere."""
    path.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8", newline="\n")
