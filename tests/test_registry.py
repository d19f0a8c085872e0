"""One registration is all that a new method needs."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import bagwise
from bagwise.base import BagClassifier
from bagwise.registry import METHODS, Entry, class_name, classifiers, find, register

# All of a method, its registration included: a bag is of the class whose mean its own mean lies nearest to.
NEAREST_MEAN = '''
import numpy as np

from bagwise.base import BagClassifier
from bagwise.preprocessing import InstanceScaler
from bagwise.registry import register


def means(bags):
    return np.add.reduceat(bags.instances, bags.offsets[:-1], axis=0) / bags.sizes[:, None]


class NearestMean(BagClassifier):
    """The nearer of two means of means decides."""

    accepts_sparse = False

    def __init__(self, *, scaling="standard", class_weight=None, positive=None):
        self.scaling = scaling
        self.class_weight = class_weight
        self.positive = positive

    def _fit(self, bags, targets, weight):
        self.scaler_ = InstanceScaler(self.scaling).fit(bags, sample_weight=weight)
        x = means(self.scaler_.transform(bags))
        self.coef_ = np.empty((targets.shape[1], x.shape[1]))
        self.intercept_ = np.empty(len(self.coef_))
        for k, positive in enumerate(targets.T):
            a, b = (np.average(x[part], axis=0, weights=weight[part]) for part in (positive, ~positive))
            self.coef_[k] = 2 * (a - b)
            self.intercept_[k] = b @ b - a @ a + np.log(weight[positive].sum() / weight[~positive].sum())

    def _bag_scores(self, bags):
        return means(self.scaler_.transform(bags)) @ self.coef_.T + self.intercept_


register(NearestMean, "nearest-mean")
'''

USE = """
import sys

import numpy as np
import nearest_mean
import bagwise
from bagwise.benchmark.methods import METHODS
from bagwise.cli import main
from bagwise.testing import check_bag_classifier

check_bag_classifier(nearest_mean.NearestMean())
bags, y = bagwise.datasets.load_musk1()
bagwise.save(nearest_mean.NearestMean().fit(bags, y), "model.bagwise")
assert (bagwise.load("model.bagwise").predict(bags) == nearest_mean.NearestMean().fit(bags, y).predict(bags)).all()
assert "nearest-mean" in METHODS and METHODS["nearest-mean"].can_run("musk1", "default")
assert bagwise.compare(bags, y, methods=["nearest-mean"], n_folds=2, n_repeats=1).rows
with open("table.csv", "w") as file:
    print("bag,label,a,b", file=file)
    for i in range(40):
        print(f"{i // 2},{i // 2 % 2},{i % 7 + 3 * (i // 2 % 2)},{i % 5}", file=file)
sys.argv = "bagwise fit table.csv --bag bag --label label --method nearest-mean -o other.bagwise".split()
main()
"""


def test_forty_lines_and_one_registration_are_a_method(tmp_path):
    assert len(NEAREST_MEAN.strip().splitlines()) <= 45
    (tmp_path / "nearest_mean.py").write_text(NEAREST_MEAN)
    (tmp_path / "use.py").write_text(USE)
    done = subprocess.run([sys.executable, "use.py"], cwd=tmp_path, capture_output=True, text=True)
    assert "model written to other.bagwise" in done.stdout, done.stdout + done.stderr
    assert (tmp_path / "other.bagwise").exists()


@pytest.mark.parametrize("entry", METHODS.values(), ids=lambda entry: entry.name)
def test_every_line_is_true(entry):
    kind = entry.load()
    assert issubclass(kind, BagClassifier)
    assert kind.__module__ == entry.module
    assert getattr(bagwise, entry.name) is kind
    assert find(entry.name) is find(entry.paper) is entry
    assert class_name(entry.paper) == class_name(entry.name) == entry.name
    page = Path(__file__).parents[1] / "docs" / "methods" / entry.page
    assert f"`{entry.name}`" in page.read_text() or f"{entry.name}(" in page.read_text()


def test_unknown_names_are_told():
    with pytest.raises(ValueError, match=r"there is no method 'SVM': choose from APR, AttentionMIL, .*RMISVC"):
        find("SVM")
    assert class_name("edge-boxes") == "edge-boxes"


def test_a_name_can_be_taken_once_only():
    class RMISVC(BagClassifier):
        def _fit(self, bags, targets, weight): ...

        def _bag_scores(self, bags):
            return np.zeros((len(bags), 1))

    with pytest.raises(ValueError, match="has a name of RMISVC"):
        register(RMISVC)


def test_what_is_not_installed_is_left_out(monkeypatch):
    monkeypatch.setitem(METHODS, "Nothing", Entry("Nothing", "nothing", "nowhere", needs="no_such_package"))
    assert all(kind.__name__ != "Nothing" for kind in classifiers())
