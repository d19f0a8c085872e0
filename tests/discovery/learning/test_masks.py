"""Masks: the random walk against a sparse solver, and shapes that are known."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import ndimage
from scipy.sparse import coo_array
from scipy.sparse.linalg import spsolve

from bagwise._utils.rle import decode_mask
from bagwise.discovery.features.store import Maps
from bagwise.discovery.learning._cutting import extent, large_parts, quantile
from bagwise.discovery.learning.masks import EDGE_STRENGTH, RESTART, fitted_masks, mask_in, walk
from bagwise.discovery.learning.scoring import ScoredImage


def solved(values, edges):
    """The same system, written down as a matrix."""
    rows, columns = values.shape
    number = np.arange(values.size).reshape(rows, columns)
    pairs = [(number[:, :-1], number[:, 1:]), (number[:-1], number[1:])]
    matrix = np.zeros((values.size, values.size)) + np.diag(np.full(values.size, RESTART))
    strength = edges.ravel()
    for one, two in pairs:
        for i, j in zip(one.ravel(), two.ravel()):
            c = np.exp(-EDGE_STRENGTH * max(strength[i], strength[j]))
            matrix[i, i] += c
            matrix[j, j] += c
            matrix[i, j] -= c
            matrix[j, i] -= c
    return spsolve(coo_array(matrix).tocsr(), RESTART * values.ravel()).reshape(rows, columns)


def test_walk_solves_its_system():
    rng = np.random.default_rng(0)
    values, edges = rng.random((12, 17)), rng.random((12, 17)) ** 3
    np.testing.assert_allclose(walk(values, edges), solved(values, edges), atol=2e-3)


def test_walk_stays_inside_boundaries():
    values, edges = np.zeros((20, 20)), np.zeros((20, 20))
    edges[5:15, [4, 15]] = edges[[4, 15], 4:16] = 1
    values[9:11, 9:11] = 1
    found = walk(values, edges)
    inside, outside = found[6:14, 6:14], found[:3]
    assert inside.min() > 20 * outside.max()


pictures = st.tuples(st.integers(1, 9), st.integers(1, 9)).flatmap(
    lambda shape: st.lists(st.sampled_from([0, 1]), min_size=shape[0] * shape[1], max_size=shape[0] * shape[1]).map(
        lambda values: np.array(values, np.uint8).reshape(shape)
    )
)


@given(pictures, st.sampled_from([0.1, 0.5, 1.0]), st.sampled_from([0.0, 0.3]))
def test_large_parts_by_the_definition(above, smallest, least_filled):
    labels, count = ndimage.label(above)
    areas = np.array([(labels == part).sum() for part in range(count + 1)], np.int32)
    largest = areas[1:].max(initial=0)
    kept = np.isin(labels, [part for part in range(1, count + 1) if areas[part] >= smallest * largest])
    expected = kept if kept.mean() >= least_filled else np.ones_like(kept)
    found = large_parts(labels.astype(np.int32), areas, smallest, least_filled)
    np.testing.assert_array_equal(found, expected)
    if found.any():
        columns, rows = (np.flatnonzero(found.any(axis=axis)) for axis in (0, 1))
        np.testing.assert_array_equal(extent(found), [columns[0], rows[0], columns[-1] + 1, rows[-1] + 1])


@given(st.lists(st.floats(0, 1), min_size=1, max_size=40), st.floats(0, 1))
def test_quantiles_are_numpys(values, share):
    picture = np.array(values)[None]
    assert quantile(picture, share) == np.quantile(picture, share)


def square(weight=1.0):
    """A square of evidence and figure with its outline."""
    figure, edges = np.zeros((48, 64), np.uint8), np.zeros((48, 64), np.uint8)
    figure[12:36, 16:48] = 250
    edges[12:36, [16, 47]] = edges[[12, 35], 16:48] = 200
    evidence = np.full((12, 16), -3.0)
    evidence[3:9, 4:12] = 3.0
    maps = Maps(np.zeros((12, 16, 2)), edges, figure)
    none = np.zeros(1)
    return ScoredImage("x", (640, 480), none, none, maps, none, evidence, none, none, none, weight, none)


@pytest.mark.parametrize(("trust", "weight"), [(1.0, 1.0), (1.0, 0.0), (0.0, 1.0)])
def test_the_mask_is_the_square_whoever_speaks(trust, weight):
    """By evidence and figure together, and by each of them alone."""
    box = np.array([[130.0, 90, 510, 390]])
    fitted, (text,) = fitted_masks(square(weight), box, trust)
    assert np.abs(fitted[0] - [145, 105, 495, 375]).max() < 10  # half-way to the square
    mask = decode_mask(text, 480, 640)
    true = np.zeros((480, 640), bool)
    true[120:360, 160:480] = True
    assert (mask & true).sum() / (mask | true).sum() > 0.85
    assert not mask[:90].any()
    assert not mask[:, 510:].any()


def test_a_box_in_which_nothing_stands_out_is_its_own_mask():
    spread = np.zeros((10, 10))
    spread[0, 0] = 1
    mask, left, top = mask_in(spread, np.array([20.0, 30, 60, 80]), (100, 100))
    assert mask.all()
    assert (left, top, *mask.shape) == (20, 30, 50, 40)
    empty = Maps(np.zeros((0, 0, 2)), np.zeros((0, 0), np.uint8), np.zeros((0, 0), np.uint8))
    none = np.zeros(1)
    image = ScoredImage("x", (64, 48), none, none, empty, none, np.zeros((0, 0)), none, none, none, 0.0, none)
    fitted, masks = fitted_masks(image, np.array([[0.0, 0, 5, 5]]), 1.0)
    assert masks == [""]
    np.testing.assert_array_equal(fitted, [[0, 0, 5, 5]])
