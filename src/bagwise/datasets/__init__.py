"""Data sets: embedded, fetched and generated."""

from bagwise.datasets.fetch import fetch_corel, fetch_newsgroups, fetch_trec9
from bagwise.datasets.generators import (
    GeneratedBags,
    make_presence_test,
    make_single_concept,
    make_single_concept_test,
    make_threshold_test,
)
from bagwise.datasets.musk import load_musk1, load_musk2
from bagwise.datasets.photos import load_demo_photos

__all__ = [
    "GeneratedBags",
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
]
