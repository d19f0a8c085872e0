"""Data sets that are not part of the package: read from a folder, or downloaded and checked.

The folder named by the environment variable BAGWISE_DATA is looked in first (``mil/NAME.npz`` or ``NAME.npz``). Else
the file is downloaded from the address in BAGWISE_DATA_URL into the user's cache. Either way its SHA-256 must be the
one in registry.txt, so that a damaged or changed file is never used.
"""

from __future__ import annotations

import hashlib
import os
from importlib.resources import files
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from bagwise.bags import Bags
from bagwise.caches import cache_folder

COREL = ("elephant", "fox", "tiger")
TREC9 = (1, 2, 3, 4, 7, 9, 10)
NEWSGROUPS = (
    "alt_atheism", "comp_graphics", "comp_os_ms-windows_misc", "comp_sys_ibm_pc_hardware", "comp_sys_mac_hardware",
    "comp_windows_x", "misc_forsale", "rec_autos", "rec_motorcycles", "rec_sport_baseball", "rec_sport_hockey",
    "sci_crypt", "sci_electronics", "sci_med", "sci_space", "soc_religion_christian", "talk_politics_guns",
    "talk_politics_mideast", "talk_politics_misc", "talk_religion_misc",
)  # fmt: skip


def fetch_corel(animal: str) -> tuple[Bags, NDArray[np.int64]]:
    """Load an image set of Andrews et al. (2002): 200 images as bags of 230-dimensional segments.

    Parameters
    ----------
    animal : {"elephant", "fox", "tiger"}
    """
    _one_of(animal, COREL, "animal")
    return _as_bags(_path(animal))[:2]


def fetch_trec9(number: int) -> tuple[Bags, NDArray[np.int64]]:
    """Load a text set of Andrews et al. (2002): 400 MEDLINE documents as bags of sparse passages.

    Parameters
    ----------
    number : {1, 2, 3, 4, 7, 9, 10}
    """
    _one_of(number, TREC9, "number")
    return _as_bags(_path(f"trec{number}"))[:2]


def fetch_newsgroups(group: str) -> tuple[Bags, NDArray[np.int64], NDArray[np.int64]]:
    """Load a text set of Zhou et al. (2009): 100 bags of posts, a few of which in positive bags are on the topic.

    Parameters
    ----------
    group : name of the newsgroup, such as "sci_space"

    Returns
    -------
    bags, y, y_instance : also the true label of every instance
    """
    _one_of(group, NEWSGROUPS, "group")
    bags, y, y_instance = _as_bags(_path(f"news_{group}"))
    if y_instance is None:
        raise ValueError(f"the file of the newsgroup {group} holds no instance labels: fetch it again")
    return bags, y, y_instance


def _one_of(value: object, known: tuple, what: str) -> None:
    if value not in known:
        raise ValueError(f"there is no {what} {value!r}: choose one of {', '.join(map(str, known))}")


def _as_bags(path: Path) -> tuple[Bags, NDArray[np.int64], NDArray[np.int64] | None]:
    with np.load(path, allow_pickle=False) as arrays:
        if "X" in arrays:
            instances = arrays["X"]
        else:
            parts = (arrays["data"], arrays["indices"], arrays["indptr"])
            instances = sparse.csr_array(parts, shape=tuple(arrays["shape"]))
        labels = arrays["y_instance"].astype(np.int64) if "y_instance" in arrays else None
        return Bags.from_groups(instances, arrays["bag"]), arrays["y"].astype(np.int64), labels


def _hashes() -> dict[str, str]:
    lines = files("bagwise.datasets").joinpath("registry.txt").read_text().splitlines()
    return dict(line.split() for line in lines)


def _path(name: str) -> Path:
    """Where the checked file is, downloading it when need be."""
    file = f"{name}.npz"
    expected = _hashes()[file]
    folder = os.environ.get("BAGWISE_DATA")
    if folder:
        for path in (Path(folder) / "mil" / file, Path(folder) / file):
            if path.is_file():
                if hashlib.sha256(path.read_bytes()).hexdigest() != expected:
                    raise ValueError(f"{path} is damaged or another version (its SHA-256 differs): replace it")
                return path
    address = os.environ.get("BAGWISE_DATA_URL")
    if not address:
        where = f"it is not in {folder}" if folder else "BAGWISE_DATA is not set"
        raise FileNotFoundError(
            f"the data set {file} was not found ({where}): name a folder that holds it in BAGWISE_DATA, "
            "or the address of one to download it from in BAGWISE_DATA_URL"
        )
    return _download(address, file, expected)


def _download(address: str, file: str, expected: str) -> Path:
    import pooch

    try:
        # pooch writes aside, checks the hash and only then moves the file into place.
        found = pooch.retrieve(f"{address.rstrip('/')}/{file}", f"sha256:{expected}", fname=file, path=cache_folder())
    except ValueError as error:
        raise ValueError(
            f"the download of {file} is truncated or damaged (its SHA-256 differs): "
            "try again, or another BAGWISE_DATA_URL"
        ) from error
    except OSError as error:
        raise OSError(f"{file} could not be downloaded from {address} ({error}): check BAGWISE_DATA_URL") from error
    return Path(found)
