"""What a person's decision says about the boxes of an image, in the terms of multiple-instance learning.

An image nobody looked at stays what it was: a bag of which some box holds the class. A confirmed box is a bag of one
that is positive; a box that lies elsewhere, or that the person passed over, is a bag of one that is negative. In an
image whose label is wrong no box holds the class: a negative bag, as any image without the label.
"""

from dataclasses import dataclass

import numpy as np

from bagwise._utils.boxes import overlaps, suppress
from bagwise.review.decisions import ItemState

SAME_BOX = 0.5  # overlap from which a proposal stands for the box that a person confirmed or passed over
OTHER_BOX = 0.3  # overlap up to which a proposal is certainly not the confirmed box
NEGATIVES = 3  # of an image: the ones the model likes best; all others it need not be told


@dataclass(frozen=True)
class Constraints:
    """Rows of an image's proposals by what is known of them.

    Attributes
    ----------
    positive : int array
        Proposals that stand for a confirmed box: one each.
    negative : int array
        Proposals that do not hold the object, and that the model must learn to like less.
    possible : int array
        Proposals of which one holds the object; empty when there is a positive one.
    """

    positive: np.ndarray
    negative: np.ndarray
    possible: np.ndarray


def constraints_of(boxes: np.ndarray, scores: np.ndarray, state: ItemState) -> Constraints:
    """Read one decision.

    Parameters
    ----------
    boxes : float array (n, 4)
        The image's proposals.
    scores : float array (n,)
        What the model gives them now.
    state : ItemState
        What the person decided of a label that is not wrong.
    """
    everything = np.arange(len(boxes))
    nothing = everything[:0]
    if state.status == "open":
        return Constraints(nothing, nothing, everything)
    rejected = np.array(state.rejected, dtype=np.float32).reshape(-1, 4)
    passed_over = np.any(overlaps(boxes, rejected) >= SAME_BOX, axis=1)
    if state.status == "rejected":
        # The label still says that the object is somewhere, though not where the person has looked.
        return Constraints(nothing, _hardest(boxes, scores, passed_over, 1), everything[~passed_over])
    confirmed = overlaps(boxes, np.array(state.boxes, dtype=np.float32))
    best = confirmed.argmax(axis=0)
    positive = np.unique(best[confirmed.max(axis=0) >= SAME_BOX])
    nearest = confirmed.max(axis=1)
    elsewhere = (nearest < OTHER_BOX) | (passed_over & (nearest < SAME_BOX))
    possible = nothing if len(positive) else everything[~elsewhere]
    return Constraints(positive, _hardest(boxes, scores, elsewhere, NEGATIVES), possible)


def _hardest(boxes: np.ndarray, scores: np.ndarray, among: np.ndarray, limit: int) -> np.ndarray:
    """Up to ``limit`` of these boxes: the best-scored ones that are not nearly the same."""
    rows = np.flatnonzero(among)
    if not len(rows):
        return rows
    return rows[suppress(boxes[rows], scores[rows], SAME_BOX, limit)]
