"""Where on the slide? A synthetic image of tissue, labelled as a whole.

Each slide is 12 x 12 patches of generated texture with dark dots for nuclei; in half of the slides some patches lie in
a region where the dots are denser and larger. The model learns from slides and their labels, and shows where. These
are no medical images.
"""

import numpy as np
from figures import HEAT, output_folder, save
from matplotlib.figure import Figure
from scipy.ndimage import gaussian_filter, label

from bagwise import RMISVC, Bags

PATCHES, SIDE = 12, 32


def slide(ill: bool, rng: np.random.RandomState) -> tuple[np.ndarray, np.ndarray]:
    """An image in [0, 1], and which patches are ill."""
    size = PATCHES * SIDE
    region = np.zeros((PATCHES, PATCHES), bool)
    if ill:
        y, x = rng.randint(1, PATCHES - 3, size=2)
        region[y : y + 2, x : x + rng.randint(2, 4)] = True
    tissue = 0.75 + 0.12 * gaussian_filter(rng.randn(size, size), 12) * 12
    dense = gaussian_filter(np.kron(region, np.ones((SIDE, SIDE))), 6)
    dots = rng.rand(size, size) < 0.0025 + 0.004 * dense
    small, large = gaussian_filter(dots * 1.0, 1.6), gaussian_filter(dots * 1.0, 2.4)
    nuclei = np.where(dense > 0.5, large * 22, small * 9)
    return np.clip(tissue - nuclei + 0.02 * rng.randn(size, size), 0, 1), region


def patches(image: np.ndarray) -> np.ndarray:
    """(144, d): what a patch looks like, in a few numbers that know nothing of the truth."""
    rows = []
    for y in range(PATCHES):
        for x in range(PATCHES):
            patch = image[y * SIDE : (y + 1) * SIDE, x * SIDE : (x + 1) * SIDE]
            dark = patch < np.median(patch) - 0.2
            fine, coarse = (np.abs(patch - gaussian_filter(patch, s)).mean() for s in (1, 4))
            rows.append([patch.mean(), patch.std(), dark.mean(), label(dark)[1] / 10, fine, coarse, patch.min()])
    return np.array(rows)


def main() -> None:
    folder = output_folder(__doc__)
    rng = np.random.RandomState(0)
    y = np.arange(60) % 2
    slides = [slide(bool(ill), rng) for ill in y]
    bags = Bags([patches(image) for image, _ in slides])
    model = RMISVC(scaling="standard", random_state=0).fit(bags[:40], y[:40])
    print(f"{model.score(bags[40:], y[40:]):.0%} of 20 new slides are right")

    figure = Figure(figsize=(9, 6.2), layout="constrained")
    panels = figure.subplots(2, 3)
    for row, i in zip(panels, (41, 42)):
        image, region = slides[i]
        row[0].imshow(image, cmap="pink", vmin=0, vmax=1)
        row[0].set_title(f"slide labelled {'ill' if y[i] else 'healthy'}")
        row[1].imshow(region, cmap="Greys", vmin=0, vmax=1)
        row[1].set_title("truth, which nobody told")
        shown = row[2].imshow(model.instance_proba(bags[[i]]).reshape(PATCHES, PATCHES), cmap=HEAT, vmin=0, vmax=1)
        row[2].set_title("probability of each patch")
        for panel in row:
            panel.set_xticks([])
            panel.set_yticks([])
    figure.colorbar(shown, ax=panels[:, 2], shrink=0.7)
    save(figure, folder / "slide.png")


if __name__ == "__main__":
    main()
