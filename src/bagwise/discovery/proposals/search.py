"""The search of Edge Boxes: score windows by the contours wholly inside, sharpen the best, drop near-duplicates.

Follows Zitnick and Dollár (2014), sections 3.2 to 3.4, with one change that makes it faster: windows are
sharpened from the best down, and one that lies on a box already sharpened is passed over, since it would end there too.
Boxes in this module are int32 ``x1, y1, x2, y2`` in pixels, exclusive at the end.
"""

from functools import lru_cache

import numpy as np

from bagwise._utils.compiled import lent, loop
from bagwise.discovery.proposals.groups import MIN_AFFINITY, Contours, find_contours
from bagwise.discovery.proposals.lookup import Index, build_index

# In the search, strengths are raised to this power: a probability of one in ten still marks many an object's outline,
# and small objects have no other. How likely a box is to hold an object is then judged by the strengths as they are:
# strong edges are more often outlines, weak ones more often texture.
POWER = 0.75
# Edges weaker than this, after that, are not looked at.
MIN_STRENGTH = 0.1
# Windows: least area in pixels, greatest ratio of sides.
MIN_AREA = 600.0
MAX_ASPECT = 4.5
# Sharpening stops when the step is under this many pixels.
LEAST_STEP = 2.0
# A window overlapping a sharpened box by more than this is not sharpened again.
SAME = 0.75
# Boxes sharpened for each box wanted: dropping near-duplicates leaves a part of them, and the more there were to choose
# from, the tighter they fit.
SHARPENED_PER_BOX = 8
LEAST_TIE = np.float32(MIN_AFFINITY)  # compared with numbers of this kind


def search_boxes(
    thin: np.ndarray, normals: np.ndarray, *, alpha: float, beta: float, min_score: float, max_boxes: int
) -> tuple[np.ndarray, np.ndarray]:
    """Best boxes of a thinned edge map.

    Parameters
    ----------
    thin, normals : float32 arrays (h, w)
        Crests of the edge map, and the direction across them.
    alpha, beta, min_score, max_boxes
        As in `bagwise.discovery.proposals.boxes.edge_boxes`.

    Returns
    -------
    boxes : int32 array (n, 4)
        By falling score of the search, in which strengths are raised to `POWER`.
    objectness : float32 array (n,)
        Score of the boxes by the edges as they are, at least ``min_score``.
    """
    plain, thin = thin, thin ** np.float32(POWER)
    contours = find_contours(thin, normals, MIN_STRENGTH)
    if len(contours.strength) == 0:
        return np.empty((0, 4), np.int32), np.empty(0, np.float32)
    height, width = thin.shape
    index = build_index(thin, contours)
    windows = make_windows(height, width, alpha)
    scores = score_windows(windows, index, contours, min_score)
    order = np.flatnonzero(scores > min_score)
    order = order[np.argsort(-scores[order], kind="stable")]
    step = (1 - alpha) / (1 + alpha) / 2
    most = SHARPENED_PER_BOX * max_boxes
    boxes, scores = sharpen(windows[order], scores[order], index, contours, step, SAME, most)
    order = np.argsort(-scores, kind="stable")
    boxes, scores = boxes[order], scores[order]
    boxes = boxes[drop_overlapping(boxes, beta, max_boxes)]
    contours = find_contours(plain, normals, MIN_STRENGTH)
    objectness = score_windows(boxes, build_index(plain, contours), contours, 0.0)
    return boxes, np.maximum(objectness, min_score).astype(np.float32)


@lru_cache(maxsize=32)
def make_windows(height: int, width: int, alpha: float) -> np.ndarray:
    """Windows whose neighbours in position, scale and aspect overlap by about ``alpha``: int32 (n, 4)."""
    scale_step = alpha**-0.5
    aspect_step = (1 + alpha) / (2 * alpha)
    shift = (1 - alpha) / (1 + alpha)
    smallest = MIN_AREA**0.5
    scales = int(np.ceil(np.log(max(height, width) / smallest) / np.log(scale_step)))
    aspects = int(np.log(MAX_ASPECT) / np.log(aspect_step) / 2)
    windows = []
    for scale in range(max(scales, 0) + 1):
        for aspect in range(-aspects, aspects + 1):
            size = smallest * scale_step**scale
            w, h = min(size * aspect_step**aspect, width), min(size / aspect_step**aspect, height)
            if w * h < MIN_AREA or max(w / h, h / w) > MAX_ASPECT * 1.1:
                continue
            columns = np.linspace(0, width - w, int(np.ceil((width - w) / max(2, w * shift))) + 1)
            rows = np.linspace(0, height - h, int(np.ceil((height - h) / max(2, h * shift))) + 1)
            corners = np.empty((len(rows), len(columns), 4), np.int32)
            corners[:, :, 0], corners[:, :, 2] = np.round(columns), np.round(columns + w)
            corners[:, :, 1], corners[:, :, 3] = np.round(rows)[:, None], np.round(rows + h)[:, None]
            windows.append(corners.reshape(-1, 4))
    # The whole image is always looked at.
    windows.append(np.array([[0, 0, width, height]], np.int32))
    result = np.concatenate(windows)
    # It is cached and shared between threads.
    result.setflags(write=False)
    return result


@loop
def _inside(table, x1, y1, x2, y2):
    return table[y2, x2] - table[y1, x2] - table[y2, x1] + table[y1, x1]


@loop
def _scratch(groups):
    """For `score_box`: strongest tie of each group, the call it is from, the call it waits in, and the queue."""
    return (
        np.empty(groups, np.float32),
        np.full(groups, -1, np.int32),
        np.full(groups, -1, np.int32),
        np.empty(groups + 1, np.int32),
    )


@loop
def score_box(x1, y1, x2, y2, floor, index, contours, scratch, stamp):
    """Score of one box; a box that cannot exceed ``floor`` gets 0 early.

    A group that meets the rim counts nothing; one tied to the rim by a chain of affinities counts one less the chain's
    product, the strongest chain inside the box. From the sum goes what lies in the middle half, and the whole is
    divided by the mean side to the power `KAPPA`.

    ``scratch`` is from `_scratch`; ``stamp`` is new for every call with it.
    """
    tied, stamps, waiting, queue = scratch
    width, height = x2 - x1, y2 - y1
    norm = index.norms[width + height]
    quarter_x, quarter_y = width // 4, height // 4
    value = _inside(index.groups, x1, y1, x2, y2) - _inside(
        index.edges, x1 + quarter_x, y1 + quarter_y, x2 - quarter_x, y2 - quarter_y
    )
    if value * norm <= floor:
        return 0.0
    tail = 0
    for side in range(4):
        if side < 2:
            line = y1 if side == 0 else y2 - 1
            # Nothing can cross the frame of the picture.
            if line == 0 or line == contours.labels.shape[0] - 1:
                continue
            runs, first, last = index.row_runs, index.row_place[line, x1], index.row_place[line, x2]
            # A run that began left of the box and continues into it is met too.
            if x1 > 0 and contours.labels[line, x1] >= 0 and contours.labels[line, x1] == contours.labels[line, x1 - 1]:
                first -= 1
        else:
            line = x1 if side == 2 else x2 - 1
            if line == 0 or line == contours.labels.shape[1] - 1:
                continue
            runs, first, last = index.column_runs, index.column_place[line, y1], index.column_place[line, y2]
            if y1 > 0 and contours.labels[y1, line] >= 0 and contours.labels[y1, line] == contours.labels[y1 - 1, line]:
                first -= 1
        for k in range(first, last):
            group = runs[k]
            if stamps[group] != stamp:
                stamps[group] = stamp
                tied[group] = 1.0
                waiting[group] = stamp
                queue[tail] = group
                tail += 1
                if x1 <= contours.x[group] < x2 and y1 <= contours.y[group] < y2:
                    value -= contours.strength[group]
        if value * norm <= floor:
            return 0.0
    # Spread from the rim; a group whose tie grows stronger is visited again. The queue is a ring, in which each group
    # waits once at most.
    head = 0
    while head != tail:
        group = queue[head]
        head = head + 1 if head + 1 < len(queue) else 0
        waiting[group] = -1
        own = tied[group]
        for k in range(contours.starts[group], contours.starts[group + 1]):
            chain = own * contours.affinity[k]
            other = contours.neighbours[k]
            if chain < LEAST_TIE or (stamps[other] == stamp and tied[other] >= chain):
                continue
            x, y = contours.x[other], contours.y[other]
            if (x < x1) | (x >= x2) | (y < y1) | (y >= y2):  # one jump, which is guessed wrong less often than four
                continue
            before = tied[other] if stamps[other] == stamp else np.float32(0)
            stamps[other] = stamp
            tied[other] = chain
            value -= contours.strength[other] * (chain - before)
            if waiting[other] != stamp:
                waiting[other] = stamp
                queue[tail] = other
                tail = tail + 1 if tail + 1 < len(queue) else 0
        if value * norm <= floor:
            return 0.0
    return value * norm


@loop
def _lent_index(index):
    return Index(
        lent(index.groups),
        lent(index.edges),
        lent(index.row_runs),
        lent(index.row_place),
        lent(index.column_runs),
        lent(index.column_place),
        lent(index.norms),
    )


@loop
def _lent_contours(contours):
    return Contours(
        lent(contours.labels),
        lent(contours.strength),
        lent(contours.x),
        lent(contours.y),
        lent(contours.tangent),
        lent(contours.starts),
        lent(contours.neighbours),
        lent(contours.affinity),
    )


@loop
def _lent_scratch(scratch):
    return lent(scratch[0]), lent(scratch[1]), lent(scratch[2]), lent(scratch[3])


@loop
def score_windows(windows, index, contours, floor):
    """`score_box` of every window: float64 (n,)."""
    return _score_windows(windows, index, contours, floor, _scratch(len(contours.strength)))


@loop
def _score_windows(windows, index, contours, floor, own_scratch):
    scratch = _lent_scratch(own_scratch)
    its_index, its_contours = _lent_index(index), _lent_contours(contours)
    scores = np.empty(len(windows))
    for i in range(len(windows)):
        x1, y1, x2, y2 = windows[i, 0], windows[i, 1], windows[i, 2], windows[i, 3]
        scores[i] = score_box(x1, y1, x2, y2, floor, its_index, its_contours, scratch, i)
    return scores


@loop
def _drawer(area, most):
    """Boxes that overlap by more than ``most`` are in one drawer of areas or in neighbouring ones."""
    return int(np.log(area) / -np.log(min(most, 0.9))) + 1


@loop
def _covered(x1, y1, x2, y2, boxes, newest, before, most):
    """Whether a box overlaps one of those put away before by more than ``most``.

    ``newest`` holds for each drawer the box that was put there last, and ``before`` for each box the one that was put
    into its drawer before it; -1 for none.
    """
    area = np.float32((x2 - x1) * (y2 - y1))
    drawer = _drawer(area, most)
    for near in range(drawer - 1, drawer + 2):
        k = newest[near]
        while k >= 0:
            wide = min(x2, boxes[k, 2]) - max(x1, boxes[k, 0])
            tall = min(y2, boxes[k, 3]) - max(y1, boxes[k, 1])
            if wide > 0 and tall > 0:
                other = np.float32((boxes[k, 2] - boxes[k, 0]) * (boxes[k, 3] - boxes[k, 1]))
                if wide * tall > most * (area + other - wide * tall):
                    return True
            k = before[k]
    return False


@loop
def _put_away(k, boxes, newest, before, most):
    """Put box ``k`` into its drawer."""
    drawer = _drawer(np.float32((boxes[k, 2] - boxes[k, 0]) * (boxes[k, 3] - boxes[k, 1])), most)
    before[k] = newest[drawer]
    newest[drawer] = k


@loop
def sharpen(windows, scores, index, contours, step, same, limit):
    """Move the sides of windows, best first, to raise their scores.

    Parameters
    ----------
    windows : int32 array (n, 4), scores : float64 array (n,)
        By falling score.
    step : float
        First move of a side, as a share of the box's extent; halved until under `LEAST_STEP` pixels.
    same : float
        A window that overlaps a sharpened box by more than this is passed over.
    limit : int
        Boxes to make at most.

    Returns
    -------
    boxes : int32 array (m, 4), scores : float64 array (m,)
    """
    return _sharpen(windows, scores, index, contours, step, same, limit, _scratch(len(contours.strength)))


@loop
def _sharpen(windows, scores, index, contours, step, same, limit, own_scratch):
    height, width = contours.labels.shape
    scratch = _lent_scratch(own_scratch)
    its_index, its_contours = _lent_index(index), _lent_contours(contours)
    boxes = np.empty((min(limit, len(windows)), 4), np.int32)
    before, newest = np.empty(len(boxes), np.int32), np.full(_drawer(height * width, same) + 3, -1, np.int32)
    best = np.empty(len(boxes))
    count, stamp = 0, 0
    box = np.empty(4, np.int32)
    for i in range(len(windows)):
        if count == len(boxes):
            break
        if _covered(windows[i, 0], windows[i, 1], windows[i, 2], windows[i, 3], boxes, newest, before, same):
            continue
        for side in range(4):
            box[side] = windows[i, side]
        score = scores[i]
        step_x, step_y = step * (box[2] - box[0]), step * (box[3] - box[1])
        while max(step_x, step_y) >= LEAST_STEP:
            for side in range(4):
                move = round(step_x if side % 2 == 0 else step_y)
                if move == 0:
                    continue
                for direction in (-1, 1):
                    place = box[side]
                    box[side] = min(max(place + direction * move, 0), width if side % 2 == 0 else height)
                    better = 0.0
                    if box[side] != place and box[2] - box[0] >= 8 and box[3] - box[1] >= 8:
                        better = score_box(
                            box[0], box[1], box[2], box[3], score, its_index, its_contours, scratch, stamp
                        )
                        stamp += 1
                    if better > score:
                        score = better
                        break
                    box[side] = place
            step_x /= 2
            step_y /= 2
        for side in range(4):
            boxes[count, side] = box[side]
        best[count] = score
        _put_away(count, boxes, newest, before, same)
        count += 1
    return boxes[:count], best[:count]


@loop
def drop_overlapping(boxes, most, limit):
    """Indices of boxes, taken in order, that overlap none taken before by more than ``most``; at most ``limit``."""
    kept = np.empty(min(limit, len(boxes)), np.int64)
    taken = np.empty((len(kept), 4), np.int32)
    largest = 1
    for i in range(len(boxes)):
        largest = max(largest, (boxes[i, 2] - boxes[i, 0]) * (boxes[i, 3] - boxes[i, 1]))
    before, newest = np.empty(len(kept), np.int32), np.full(_drawer(largest, most) + 3, -1, np.int32)
    count = 0
    for i in range(len(boxes)):
        if count == len(kept):
            break
        if not _covered(boxes[i, 0], boxes[i, 1], boxes[i, 2], boxes[i, 3], taken, newest, before, most):
            kept[count] = i
            for side in range(4):
                taken[count, side] = boxes[i, side]
            _put_away(count, taken, newest, before, most)
            count += 1
    return kept[:count]
