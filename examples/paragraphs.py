"""Which paragraph made someone file this document under "space"?

The documents are made up, so that the truth is known: paragraphs of everyday topics, one of which in every document
filed under "space" speaks of space. The model sees documents and their labels, never which paragraph it was.
"""

import textwrap

import numpy as np
from figures import output_folder, save
from matplotlib import colormaps
from matplotlib.figure import Figure
from scipy import sparse
from sklearn.feature_extraction.text import TfidfVectorizer

from bagwise import RMISVC, Bags

TOPICS = {
    "space": "orbit rocket launch satellite moon lunar crew telescope planet thruster mission station astronaut",
    "garden": "soil seeds roses compost watering hedge tomatoes pruning lawn bulbs spring greenhouse",
    "cooking": "simmer onion butter oven dough recipe garlic sauce roast pepper stir serve",
    "travel": "train ticket hotel harbour museum walk bridge market luggage evening ferry street",
    "finance": "rates bank budget loan shares quarter savings price market tax report debt",
}
FILLER = "the a of and in with after before some new old about long early again later quite small"


def paragraph(topic: str, rng: np.random.RandomState) -> str:
    words = [rng.choice(TOPICS[topic].split()) if rng.rand() < 0.35 else rng.choice(FILLER.split()) for _ in range(26)]
    return " ".join(words).capitalize() + "."


def documents(count: int, rng: np.random.RandomState) -> tuple[list[list[str]], np.ndarray, list[int | None]]:
    """Texts, whether they are filed under space, and which paragraph is the reason."""
    others = [topic for topic in TOPICS if topic != "space"]
    texts, witness = [], []
    for i in range(count):
        topics = list(rng.choice(others, size=rng.randint(4, 8)))
        place = int(rng.randint(len(topics))) if i % 2 else None
        if place is not None:
            topics[place] = "space"
        texts.append([paragraph(topic, rng) for topic in topics])
        witness.append(place)
    return texts, np.arange(count) % 2, witness


def main() -> None:
    folder = output_folder(__doc__)
    rng = np.random.RandomState(0)
    texts, y, _ = documents(120, rng)
    new, new_y, reasons = documents(60, rng)
    words = TfidfVectorizer().fit([p for text in texts for p in text])

    def as_bags(some: list[list[str]]) -> Bags:
        return Bags([sparse.csr_array(words.transform(text)) for text in some])

    model = RMISVC(random_state=0).fit(as_bags(texts), y)
    scores = as_bags(new).split(model.instance_proba(as_bags(new)))
    found = np.mean([int(np.argmax(s)) == place for s, place in zip(scores, reasons) if place is not None])
    print(f"{model.score(as_bags(new), new_y):.0%} of new documents are right; in {found:.0%} of those on space")
    print("the paragraph with the highest score is the one that is about it")

    figure = Figure(figsize=(9, 4.6), layout="constrained")
    heat = colormaps["YlOrRd"]
    for panel, i in zip(figure.subplots(1, 2), (1, 2)):
        panel.set_axis_off()
        told = "the marked paragraph is why" if scores[i].max() > 0.5 else "no paragraph is marked"
        panel.set_title(f'filed under "space": {"yes" if new_y[i] else "no"}; {told}', loc="left", fontsize=11)
        top = 0.98
        for text, p in zip(new[i], scores[i]):
            lines = textwrap.fill(text, 52)
            panel.text(
                0, top, lines, va="top", fontsize=8, family="monospace", transform=panel.transAxes,
                bbox={"facecolor": heat(0.5 * p) if p > 0.1 else "#f4f4f4", "edgecolor": "none", "pad": 2},
            )  # fmt: skip
            top -= 0.045 * (lines.count("\n") + 1) + 0.03
    save(figure, folder / "paragraphs.png")


if __name__ == "__main__":
    main()
