"""Which shapes make a molecule smell of musk?

Shows some molecules of MUSK 1, each as a model sees it that has learned from other molecules only: one row for each
molecule, one cell for each of its shapes, dark where the model holds the shape responsible.
"""

import numpy as np
from figures import HEAT, NEGATIVE, POSITIVE, output_folder, save
from matplotlib.figure import Figure
from sklearn.model_selection import KFold

from bagwise import RMISVC
from bagwise.datasets import load_musk1

SHOWN = 10  # molecules of each kind
WIDEST = 12  # shapes shown of one molecule


def main() -> None:
    folder = output_folder(__doc__)
    bags, y = load_musk1()
    proba, right = [np.empty(0)] * len(bags), 0
    for train, test in KFold(10, shuffle=True, random_state=0).split(bags):
        model = RMISVC(random_state=0).fit(bags[train], y[train])
        right += int((model.predict(bags[test]) == y[test]).sum())
        for molecule, shapes in zip(test, bags[test].split(model.instance_proba(bags[test]))):
            proba[molecule] = shapes
    print(f"{right} of {len(bags)} molecules are right")

    figure = Figure(figsize=(9, 4), layout="constrained")
    for panel, label, title in zip(figure.subplots(1, 2), (1, 0), ("musks", "not musks")):
        chosen = np.flatnonzero(y == label)[:SHOWN]
        rows = [proba[molecule] for molecule in chosen]
        for place, row in enumerate(rows):
            cells = sorted(row, reverse=True)[:WIDEST]
            edges = (np.arange(len(cells) + 1), [place - 0.4, place + 0.4])
            image = panel.pcolormesh(*edges, [cells], cmap=HEAT, vmin=0, vmax=1, edgecolor="white", linewidth=1.5)
        panel.set_xlim(0, WIDEST)
        panel.set_ylim(len(rows) - 0.5, -0.5)
        panel.set_xticks(range(0, WIDEST + 1, 4))
        panel.set_yticks(range(len(rows)), [f"molecule {bags.ids[molecule]}" for molecule in chosen], fontsize=8)
        panel.set_xlabel("shapes, most musky first")
        panel.set_title(title, color=POSITIVE if label else NEGATIVE)
    figure.colorbar(image, ax=figure.axes, label="probability that this shape makes it musky", shrink=0.8)
    save(figure, folder / "molecules.png")


if __name__ == "__main__":
    main()
