"""From the public MATLAB files of MUSK, Corel, TREC9 and the newsgroups to the files that ``fetch_*`` read."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, NoReturn

from bagwise._utils.progress import track
from bagwise.datasets.fetch import NEWSGROUPS, data_folder
from bagwise.datasets.files import known_digests

ANDREWS = re.compile(
    r"(?P<musk>musk[12])norm_matlab|(?P<corel>elephant|fox|tiger)_\d+x\d+_matlab|trec_?(?P<trec>\d+)_\d+x\d+_matlab"
)


@dataclass(frozen=True)
class Converted:
    """A data set that was converted; ``known`` when it is the one that the tables were made with."""

    name: str
    source: Path
    path: Path
    known: bool


def convert_folder(folder: str | Path, output: str | Path | None = None) -> list[Converted]:
    """Convert every MATLAB file of a known name under a folder.

    Parameters
    ----------
    folder : path
        Where the files were unpacked.
    output : path, optional
        Where to write ``NAME.npz``; by default where ``fetch_*`` look: the folder in BAGWISE_DATA, else the user's
        cache.

    Returns
    -------
    list of Converted

    Raises
    ------
    ValueError
        When a file of a known name holds something else, or none is there; one sentence.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise ValueError(f"{folder} is not a folder: unpack the archive, and name the folder it makes")
    target = data_folder() if output is None else Path(output)
    named = {path: name for path in sorted(folder.rglob("*.mat")) if (name := set_name(path)) is not None}
    if not named:
        raise ValueError(
            f"{folder} holds no file such as fox_100x100_matlab.mat, trec_1_200x200_matlab.mat or sci.space.mat"
        )
    sums = {path: hashlib.sha256(path.read_bytes()).hexdigest() for path in named}
    tasks = [(path, f"{path.name} sha256:{sums[path]}", target / f"{name}.npz") for path, name in named.items()]
    known = known_digests()
    return [
        Converted(named[path], path, place, known.get(place.name) == digest)
        for (path, _, place), digest in zip(tasks, _digests(tasks))
    ]


def _digests(tasks: list[tuple[Path, str, Path]]) -> Iterator[str]:
    """Have another process convert the files; yield the digest of what each holds."""
    with (
        tempfile.TemporaryFile("w+") as told,
        subprocess.Popen(
            [sys.executable, "-m", "bagwise.datasets.matlab"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=told,
            text=True,
        ) as reader,
    ):
        assert reader.stdin is not None
        assert reader.stdout is not None
        reader.stdin.write(json.dumps([[str(part) for part in task] for task in tasks]))
        reader.stdin.close()
        for path, _, _ in track(tasks, description="converting"):
            answer = json.loads(reader.stdout.readline() or "{}")
            if "error" in answer:
                reader.kill()
                raise ValueError(answer["error"])
            if "digest" not in answer:
                _explain_the_end(path, reader.wait(), told)
            yield answer["digest"]


def _explain_the_end(path: Path, status: int, told: IO[str]) -> NoReturn:
    if status < 0:  # by a signal
        raise ValueError(f"{path} is damaged: it crashes the reader of MATLAB files")
    told.seek(0)
    raise RuntimeError(f"the reader of MATLAB files ended at {path}: {told.read()}")


def set_name(path: Path) -> str | None:
    """The data set that a file holds by its name, or None."""
    match = ANDREWS.fullmatch(path.stem)
    if match is None:
        group = path.stem.replace(".", "_")
        return f"news_{group}" if group in NEWSGROUPS else None
    if match["musk"]:
        return f"{match['musk']}_norm"
    return match["corel"] or f"trec{match['trec']}"
