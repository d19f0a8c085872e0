"""Data sets that are not part of the package: converted from public files, read from a folder, or downloaded.

The folder named by the environment variable BAGWISE_DATA is looked in first (``mil/NAME.npz`` or ``NAME.npz``), then
the folder in the user's cache that ``bagwise data convert`` writes to. Else the file is downloaded from the address in
BAGWISE_DATA_URL. Its content must be the one in registry.txt, so that a damaged or changed file is never used; one that
was converted from another version of the public files is used with a warning.
"""

from __future__ import annotations

import os
import warnings
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bagwise._utils.caches import cache_folder
from bagwise.bags import Bags
from bagwise.datasets.files import Problem, known_digests, read_problem

ANDREWS_FROM = "MIL-Data-2002-Musk-Corel-Trec9-MATLAB, http://www.cs.columbia.edu/~andrews/mil/datasets.html"
NEWSGROUPS_FROM = "mil-text-data, http://www.lamda.nju.edu.cn/data_MItext.ashx"

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
    return _load(animal).as_bags()[:2]


def fetch_trec9(number: int) -> tuple[Bags, NDArray[np.int64]]:
    """Load a text set of Andrews et al. (2002): 400 MEDLINE documents as bags of sparse passages.

    Parameters
    ----------
    number : {1, 2, 3, 4, 7, 9, 10}
    """
    _one_of(number, TREC9, "number")
    return _load(f"trec{number}").as_bags()[:2]


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
    bags, y, y_instance = _load(f"news_{group}").as_bags()
    if y_instance is None:
        raise ValueError(f"the file of the newsgroup {group} holds no instance labels: fetch it again")
    return bags, y, y_instance


def _one_of(value: object, known: tuple, what: str) -> None:
    if value not in known:
        raise ValueError(f"there is no {what} {value!r}: choose one of {', '.join(map(str, known))}")


def data_folder() -> Path:
    """Where converted and downloaded data sets go: the folder in BAGWISE_DATA, else one in the user's cache."""
    folder = os.environ.get("BAGWISE_DATA")
    return Path(folder) / "mil" if folder else cache_folder() / "data"


def find_file(name: str) -> Path | None:
    """The file of a data set on this disk, if it is there."""
    folder = os.environ.get("BAGWISE_DATA")
    places = [Path(folder) / "mil", Path(folder)] if folder else []
    places.append(cache_folder() / "data")
    return next((place / f"{name}.npz" for place in places if (place / f"{name}.npz").is_file()), None)


def available() -> dict[str, str]:
    """Every data set of the tables with the file that holds it, or where to get it."""
    found = {"musk1": "part of bagwise", "musk2": "part of bagwise"}
    for name in (*COREL, *(f"trec{number}" for number in TREC9), *(f"news_{group}" for group in NEWSGROUPS)):
        path = find_file(name)
        found[name] = str(path) if path is not None else f"missing; from {_source(name)}"
    return found


def _source(name: str) -> str:
    return NEWSGROUPS_FROM if name.startswith("news_") else ANDREWS_FROM


def _load(name: str) -> Problem:
    """The checked content of a data set, downloading it when need be."""
    path = find_file(name)
    if path is None:
        return _download(name)
    problem = read_problem(path)
    if problem.digest() != known_digests()[path.name]:
        if not problem.converted_from:
            raise ValueError(f"{path} is damaged or another version (its content differs): replace it")
        warnings.warn(
            f"{path} was converted from another version of the public files ({problem.converted_from}) than the "
            "published tables: expect other figures",
            stacklevel=3,
        )
    return problem


def _download(name: str) -> Problem:
    import pooch

    file, address = f"{name}.npz", os.environ.get("BAGWISE_DATA_URL")
    if not address:
        raise FileNotFoundError(
            f"the data set {file} is not on this machine: get the public files ({_source(name)}), unpack them, and run "
            "`bagwise data convert FOLDER`; or name a folder that holds it in BAGWISE_DATA"
        )
    try:
        found = Path(pooch.retrieve(f"{address.rstrip('/')}/{file}", None, fname=file, path=cache_folder() / "data"))
    except OSError as error:
        raise OSError(f"{file} could not be downloaded from {address} ({error}): check BAGWISE_DATA_URL") from error
    try:
        problem = read_problem(found)
        if problem.digest() != known_digests()[file]:
            raise ValueError("its content differs")
    except ValueError as error:
        found.unlink()  # or the next call would take it for good
        raise ValueError(
            f"the download of {file} is truncated or damaged ({error}): try again, or another BAGWISE_DATA_URL"
        ) from error
    return problem
