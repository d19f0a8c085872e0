"""Labels that are probably wrong: images that look like another class than the one they are labelled with.

Each image is judged by a classifier that has not seen it, on features of the whole picture. A label is doubtful
when the classifier gives it less than it gives a typical picture of that class, and gives some other class, which
the image does not carry, at least what a typical picture of that class gets (the rule of confident learning,
Northcutt and others 2021, here for pictures with several labels).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bagwise.discovery.features.backbones import Backbone

SHORT_SIDE = 224
COLUMNS = 256
FEWEST = 6  # images of a class, to judge its labels
FOLDS = 5


@dataclass(frozen=True)
class DoubtfulLabel:
    """A label that looks wrong, and the class the image looks like; probabilities of both."""

    row: int
    label: str
    probability: float
    looks_like: str
    its_probability: float


class WholePicture:
    """Features of whole images, few enough to keep for all of them."""

    def __init__(self, backbone: Backbone):
        self.backbone = backbone
        self._mixture: np.ndarray | None = None

    def __call__(self, image: np.ndarray) -> np.ndarray:
        """float16 array (256,) of an image: the mean of the network's map, by a fixed random projection."""
        maps = self.backbone.run(self.backbone.preprocess(image, SHORT_SIDE)[None])[0]
        mean = maps.reshape(len(maps), -1).mean(axis=1)
        if self._mixture is None:
            random = np.random.default_rng(0)
            self._mixture = random.normal(size=(len(mean), COLUMNS)).astype(np.float32) / np.sqrt(COLUMNS)
        return (mean @ self._mixture).astype(np.float16)


def doubtful_labels(features: np.ndarray, labels: Sequence[Sequence[str]]) -> list[DoubtfulLabel]:
    """The labels that look wrong, the most doubtful first.

    Parameters
    ----------
    features : array (n, d)
    labels : sequence of sequences of str, per image

    Returns
    -------
    list of DoubtfulLabel
        Empty where fewer than two classes have six images.
    """
    counts: dict[str, int] = {}
    for names in labels:
        for name in names:
            counts[name] = counts.get(name, 0) + 1
    classes = sorted(name for name, count in counts.items() if count >= FEWEST)
    if len(classes) < 2:
        return []
    given = np.array([[name in names for name in classes] for names in labels])
    chance = _unseen_probabilities(np.asarray(features, dtype=np.float32), given)
    typical = np.array([chance[given[:, column], column].mean() for column in range(len(classes))])
    found = []
    for row, column in np.argwhere(given & (chance < typical)):
        # Where a picture carries other labels that explain it, nothing is odd about its looking like them.
        strange = ~given[row] & (chance[row] >= typical) & (chance[row] > chance[row, column])
        if strange.any() and not (given[row] & (chance[row] >= typical)).any():
            other = int(np.argmax(np.where(strange, chance[row], -1)))
            found.append(
                DoubtfulLabel(int(row), classes[column], float(chance[row, column]), classes[other], chance[row, other])
            )
    return sorted(found, key=lambda item: item.probability - item.its_probability)


def _unseen_probabilities(features: np.ndarray, given: np.ndarray) -> np.ndarray:
    """Probability of each class (n, n_classes) for each image, from classifiers that did not see it."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import StratifiedKFold, cross_val_predict
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    model = make_pipeline(StandardScaler(), LogisticRegression(C=0.01, max_iter=500, class_weight="balanced"))
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=0)
    columns = []
    for member in given.T:
        if member.all():
            columns.append(np.ones(len(member)))  # a label that all carry tells nothing
        else:
            columns.append(cross_val_predict(model, features, member, cv=folds, method="predict_proba")[:, 1])
    return np.column_stack(columns)
