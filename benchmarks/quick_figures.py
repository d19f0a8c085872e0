"""The figures of `benchmarks.quick`: fits, the parts of the work on an image, the index of a store, imports."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import numpy as np
from benchmarks.quick import Figure, Work, children, fresh_python
from sklearn.svm import LinearSVC

from bagwise import MISVC, RMISVC, Bags, MiSVC
from bagwise.datasets import load_demo_photos, load_musk1
from bagwise.preprocessing import InstanceScaler

ROUNDS = 50
IMAGES_IN_THE_INDEX = 16_384


def made(bags: int = 300, instances: int = 10, features: int = 50) -> tuple[Bags, np.ndarray]:
    """Normal instances, one of which in every positive bag is moved along one axis."""
    rng = np.random.RandomState(0)
    y = np.arange(bags) % 2
    x = rng.randn(bags, instances, features)
    x[y == 1, rng.randint(instances, size=int(y.sum())), 0] += 4
    return Bags(x), y


def plain_rmi(
    tables: list[np.ndarray], y: np.ndarray, order: np.ndarray, lam: float, beta: float, margin: float
) -> Work:
    """RMI-SVM's steps in NumPy, vectorised over the instances of a bag."""

    def work() -> np.ndarray:
        w = np.zeros(tables[0].shape[1])
        for t, i in enumerate(order, start=1):
            z = tables[i] @ w
            p = 1 / (1 + np.exp(-z))
            pull = p / np.expm1(np.logaddexp(0, z).sum()) if y[i] else -p
            sign = np.where(z >= 0, 1.0, -1.0)
            step = beta * pull + np.where(sign * z < margin, sign, 0.0) / len(z)
            w = (1 - 1 / t) * w + step @ tables[i] / (lam * t)
            w *= min(1.0, 1 / np.sqrt(lam * (w @ w)))
        return w

    return work


def rmi_on_musk(folder: Path) -> tuple[Work, Work]:
    bags, y = load_musk1()
    bags = InstanceScaler("unit").fit_transform(bags)
    tables = [np.hstack([bag, np.ones((len(bag), 1))]) for bag in bags]
    order = np.concatenate([np.random.RandomState(k).permutation(len(y)) for k in range(40)])
    model = RMISVC(0.01, 5.0, 1.0, epochs=40, scaling=None, calibrate=False, random_state=0)
    return lambda: model.fit(bags, y), plain_rmi(tables, y, order, 0.01, 5.0, 1.0)


def rmi_that_chooses(folder: Path) -> tuple[Work, Work]:
    bags, y = made()
    fixed = RMISVC(0.01, calibrate=False, random_state=0)
    return lambda: RMISVC(random_state=0).fit(bags, y), lambda: fixed.fit(bags, y)


def best_instance_loop(bags: Bags, y: np.ndarray) -> Work:
    """MI-SVM: a positive bag stands for its best instance; train anew until the choice stands."""

    def work() -> None:
        positive = [bag for bag, label in zip(bags, y) if label]
        negative = np.concatenate([bag for bag, label in zip(bags, y) if not label])
        chosen = np.array([bag.mean(axis=0) for bag in positive])
        labels = np.arange(len(positive) + len(negative)) < len(positive)
        for _ in range(ROUNDS):
            model = LinearSVC(class_weight="balanced").fit(np.concatenate([chosen, negative]), labels)
            best = np.array([bag[model.decision_function(bag).argmax()] for bag in positive])
            if np.array_equal(best, chosen):
                break
            chosen = best

    return work


def every_instance_loop(bags: Bags, y: np.ndarray) -> Work:
    """mi-SVM: the instances of positive bags get the labels that the last model gives them, at least one a bag."""

    def work() -> None:
        x, of = bags.instances, np.repeat(np.arange(len(bags)), bags.sizes)
        labels = y[of] == 1
        for _ in range(ROUNDS):
            scores = LinearSVC(class_weight="balanced").fit(x, labels).decision_function(x)
            new = (scores > 0) & (y[of] == 1)
            for bag in np.flatnonzero(y):
                rows = np.flatnonzero(of == bag)
                new[rows[scores[rows].argmax()]] = True
            if np.array_equal(new, labels):
                break
            labels = new

    return work


def mi_svm(folder: Path) -> tuple[Work, Work]:
    bags, y = made(150)
    return lambda: MISVC(random_state=0).fit(bags, y), best_instance_loop(bags, y)


def instances_svm(folder: Path) -> tuple[Work, Work]:
    bags, y = made(150)
    return lambda: MiSVC(random_state=0).fit(bags, y), every_instance_loop(bags, y)


def product() -> Work:
    """Some products of matrices, a tenth of a second: what an image's work is measured against."""
    a = np.random.default_rng(0).normal(size=(640, 640)).astype(np.float32)

    def work() -> float:
        return sum(float((a @ a).max()) for _ in range(8))

    return work


@lru_cache(maxsize=1)
def parts_of_an_image() -> dict[str, Work]:
    """The parts of the work on an image of the demo, with default settings."""
    from threadpoolctl import threadpool_limits

    from bagwise.discovery.features.reduction import Reduction
    from bagwise.discovery.run.settings import Settings
    from bagwise.discovery.sources.images import read_image

    threadpool_limits(1)
    settings = Settings()
    file = sorted(load_demo_photos().root.glob("*/*.webp"))[0]
    image = read_image(file)
    size = (image.shape[1], image.shape[0])
    look_at, features = settings.make_proposer(), settings.make_features()
    look = look_at(image)
    prepared = features.prepare(image, look.boxes)
    rows = features.averages(prepared, size, look.boxes, np.arange(len(look.boxes)))
    features.reduction = Reduction.fit(rows, settings.components)
    return {
        "read": lambda: read_image(file),
        "look": lambda: look_at(image),
        "network": lambda: features.prepare(image, look.boxes),
        "averages": lambda: features.finish(prepared, size, look.boxes),
    }


def index_of_a_store(folder: Path) -> tuple[Work, Work]:
    """Opening a store of many shards against reading the bytes of its index."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from bagwise.discovery.features.store import IMAGES_PER_SHARD, INDEX, TOGETHER, FeatureStore

    FeatureStore(folder, {})
    for shard, first in enumerate(range(0, IMAGES_IN_THE_INDEX, IMAGES_PER_SHARD)):
        files = [f"{i:08d}.jpg" for i in range(first, first + IMAGES_PER_SHARD)]
        numbers = [[100] * len(files)] * (len(INDEX.names) - 1)
        (folder / f"shard-{shard:05d}").mkdir()
        table = pa.table(dict(zip(INDEX.names, [files, *numbers])), schema=INDEX)
        pq.write_table(table, folder / f"shard-{shard:05d}" / "index.parquet")
    FeatureStore(folder).consolidate()
    return lambda: FeatureStore(folder), (folder / TOGETHER).read_bytes


def imports(folder: Path) -> tuple[Work, Work]:
    return fresh_python("from bagwise import RMISVC"), fresh_python("import sklearn.svm")


FIGURES = [
    Figure("RMI-SVM: a fit on MUSK1 with a fixed λ", "the same steps in NumPy", rmi_on_musk),
    Figure("RMI-SVM: a fit that chooses λ", "a fit with a fixed λ", rmi_that_chooses),
    Figure("MI-SVM: a fit on 150 bags", "a loop over LinearSVC", mi_svm),
    Figure("mi-SVM: a fit on 150 bags", "a loop over LinearSVC", instances_svm),
    Figure("an image: read", "a few matrix products", lambda folder: (parts_of_an_image()["read"], product())),
    Figure(
        "an image: edges, figure and boxes",
        "a few matrix products",
        lambda folder: (parts_of_an_image()["look"], product()),
    ),
    Figure("an image: network", "a few matrix products", lambda folder: (parts_of_an_image()["network"], product())),
    Figure(
        "an image: averages over boxes",
        "a few matrix products",
        lambda folder: (parts_of_an_image()["averages"], product()),
    ),
    Figure("a store of 16 384 images: opened", "reading the bytes of its index", index_of_a_store),
    Figure("import RMISVC", "import sklearn.svm", imports, clock=children),
]
