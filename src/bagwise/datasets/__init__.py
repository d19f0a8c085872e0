"""Data sets: embedded, converted, fetched and generated."""

from bagwise.datasets.convert import convert_folder
from bagwise.datasets.fetch import fetch_corel, fetch_newsgroups, fetch_trec9
from bagwise.datasets.generators import (
    GeneratedBags,
    make_presence_test,
    make_single_concept,
    make_single_concept_test,
    make_threshold_test,
)
from bagwise.datasets.hdf5 import read_hdf5
from bagwise.datasets.musk import load_musk1, load_musk2
from bagwise.datasets.photos import load_demo_photos

__all__ = [
    "GeneratedBags",
    "convert_folder",
    "fetch_corel",
    "fetch_newsgroups",
    "fetch_trec9",
    "load_demo_photos",
    "load_musk1",
    "load_musk2",
    "make_presence_test",
    "make_single_concept",
    "make_single_concept_test",
    "make_threshold_test",
    "read_hdf5",
]
