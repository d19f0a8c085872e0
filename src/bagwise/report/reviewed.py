"""What a person has decided about a run, in figures."""

from collections import Counter

from bagwise._utils.words import counted
from bagwise.discovery.run.folder import RunFolder
from bagwise.report.tables import table
from bagwise.report.text import escape
from bagwise.review.decisions import read_decisions

# What is counted of a class's labels, in this order: (heading, status).
COLUMNS = (("accepted", "accepted"), ("elsewhere", "rejected"), ("wrong label", "absent"), ("to check", "open"))


def review_section(run: RunFolder) -> str:
    """HTML of the section, or nothing when nobody has decided anything."""
    decisions = read_decisions(run.path)
    files, labels = run.images["file"].to_pylist(), run.images["labels"].to_pylist()
    given = {(file, label) for file, names in zip(files, labels) for label in names}
    kept = set(files)
    added = {pair for pair, state in decisions.items() if state.added and pair not in given and pair[0] in kept}
    statuses = {pair: decisions[pair].status if pair in decisions else "open" for pair in given | added}
    count: Counter[tuple[str, str]] = Counter((label, status) for (_, label), status in statuses.items())
    checked = sum(status != "open" for status in statuses.values())
    if not checked and not added:
        return ""
    classes = [*run.classes, *sorted({label for _, label in added} - set(run.classes))]
    rows = [
        [
            escape(label),
            *(f"{count[label, status]:,}" for _, status in COLUMNS),
            f"{sum(pair[1] == label for pair in added):,}",
        ]
        for label in classes
    ]
    said = (
        f"{checked:,} of {counted(len(statuses), 'label')} checked: {_sum(count, 'accepted')} accepted, "
        f"{_sum(count, 'rejected')} with the object elsewhere, {_sum(count, 'absent')} wrong; {len(added):,} added."
    )
    heads = ["class", *(name for name, _ in COLUMNS), "added"]
    return f'<section id="review"><h2>Checked by a person</h2><p>{said}</p>{table(heads, rows)}</section>'


def _sum(count: Counter[tuple[str, str]], status: str) -> str:
    return f"{sum(number for (_, each), number in count.items() if each == status):,}"
