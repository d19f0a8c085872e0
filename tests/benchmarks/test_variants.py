"""Other parameters where we stay below a published figure: measured once, told best first."""

import numpy as np

from benchmarks import variants


def test_variants_are_measured_once_and_told_best_first(tmp_path, monkeypatch):
    monkeypatch.setattr(variants, "VARIANTS", {"RMI-SVM": (("musk1",), ({"epochs": 1, "lam": 1.0}, {"epochs": 5}))})
    first = variants.measure(["RMI-SVM"], 1, tmp_path / "variants.jsonl")
    monkeypatch.setattr(variants, "cross_validate_once", None)
    assert variants.measure(["RMI-SVM"], 1, tmp_path / "variants.jsonl") == first
    shown = sorted(((np.mean(row["accuracy"]), row["variant"]["epochs"]) for row in first), reverse=True)
    told = variants.markdown(first).splitlines()[2]
    assert [f"epochs={epochs}" in part for part, (_, epochs) in zip(told.split(" · "), shown)] == [True, True]
