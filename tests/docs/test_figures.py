"""Figures that pages state are those in the files that commands wrote."""

import json
import re

from tests.docs.pages import ROOT

LOOP = json.loads((ROOT / "benchmarks" / "results" / "review_loop.json").read_text())["results"]


def rows(page: str, columns: int) -> list[list[str]]:
    """Table rows of a page that begin with a number."""
    found = [line.strip("| ").split(" | ") for line in (ROOT / page).read_text().splitlines() if line.startswith("| ")]
    return [row for row in found if len(row) == columns and re.match(r"\d+ ?\(|0$", row[0])]


def test_hour_of_labelling():
    by_number = {record["reviewed"]: record for record in LOOP["doubt-first"]}
    shown = rows("docs/howto/label-1000.md", 4)
    assert len(shown) == 5
    for number, keys, right, seconds in shown:
        record = by_number[int(number.split()[0])]
        assert float(right) == round(record["corloc"], 1)
        if record["reviewed"]:
            assert float(keys) == round(record["keys"] / record["reviewed"], 1)
            past = [other["refit_seconds"] for other in LOOP["doubt-first"] if other["reviewed"] <= record["reviewed"]]
            assert int(seconds) == round(sum(past))


def test_review_loop():
    shown = rows("docs/howto/review.md", 7)
    assert len(shown) == sum(map(len, LOOP.values()))
    for number, strategy, keys, everything, without, unreviewed, unreviewed_without in shown:
        (record,) = [r for r in LOOP[strategy] if r["reviewed"] == int(number.split()[0])]
        assert int(keys) == record["keys"]
        figures = ("corloc", "corloc_without_refit", "unreviewed", "unreviewed_without_refit")
        for text, name in zip((everything, without, unreviewed, unreviewed_without), figures):
            assert abs(float(text) - record[name]) <= 0.051
