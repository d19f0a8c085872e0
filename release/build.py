"""Build a release twice, from two copies of the last commit, and keep it only when both agree bit for bit.

    python -m release.build [FOLDER]

FOLDER (default: dist) then holds the source archive, the wheel built from it, the parts list of the wheel and
SHA256SUMS. The time in the archives is that of the commit, so anyone with the commit and constraints.txt makes the
same files.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from release.constraints import ROOT, read_pins
from release.sbom import parts_list, write_parts_list


def build(tree: Path, out: Path, epoch: int) -> dict[str, str]:
    """Build the source archive and, from it, the wheel; return the SHA-256 of each by name.

    The build backend is the one that is installed (constraints.txt pins it): another version may write other bytes.
    """
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(out), str(tree)]
    environment = {**os.environ, "SOURCE_DATE_EPOCH": str(epoch)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"the build failed:\n{done.stdout}{done.stderr}")
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(out.iterdir())}


def export_commit(folder: Path) -> int:
    """Unpack the last commit and return its time in seconds."""
    archive = folder.with_suffix(".tar")
    subprocess.run(["git", "archive", "-o", str(archive), "HEAD"], cwd=ROOT, check=True)
    with tarfile.open(archive) as files:
        files.extractall(folder, filter="data")
    time = subprocess.run(["git", "log", "-1", "--format=%ct"], cwd=ROOT, check=True, capture_output=True, text=True)
    return int(time.stdout)


def main() -> None:
    target = Path(sys.argv[1] if len(sys.argv) > 1 else "dist")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        sums = []
        for copy in ("first", "another-copy"):
            epoch = export_commit(folder / copy)
            sums.append(build(folder / copy, folder / f"{copy}-out", epoch))
        if sums[0] != sums[1]:
            raise SystemExit(f"two builds of the same commit differ: {sums[0]} and {sums[1]}")
        out = folder / "first-out"
        (wheel,) = out.glob("*.whl")
        parts = out / f"{wheel.name.split('-py3')[0]}.cdx.json"
        write_parts_list(parts, parts_list(wheel, read_pins(), epoch))
        sums[0][parts.name] = hashlib.sha256(parts.read_bytes()).hexdigest()
        lines = [f"{digest}  {file}\n" for file, digest in sorted(sums[0].items())]
        (out / "SHA256SUMS").write_text("".join(lines), encoding="ascii", newline="\n")
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(out, target)
    print("".join(lines), end="")


if __name__ == "__main__":
    main()
