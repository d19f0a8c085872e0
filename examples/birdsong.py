"""When does the bird sing? Synthetic recordings, labelled as a whole.

Each recording is eight seconds of noise, wind and the calls of other birds; in half of them one bird adds its rising
whistle. The model learns from which recordings hold it, and tells when. No real recording is used.
"""

import numpy as np
from figures import NEGATIVE, POSITIVE, output_folder, save
from matplotlib.figure import Figure
from scipy.signal import spectrogram

from bagwise import RMISVC, Bags

RATE, SECONDS = 8000, 8  # samples a second; length of a recording
STEP = 128  # samples between columns of the spectrogram
WIDTH, HOP = 16, 8  # columns of an instance (a quarter of a second), and from one to the next


def tone(start: float, end: float, seconds: float) -> np.ndarray:
    """A whistle that glides from one pitch to another."""
    t = np.arange(int(seconds * RATE)) / RATE
    return np.sin(2 * np.pi * (start * t + (end - start) * t**2 / (2 * seconds))) * np.hanning(len(t))


CALLS = {
    "whistle": lambda: tone(1500, 3000, 0.5),  # the bird we look for
    "falling": lambda: tone(2800, 1400, 0.5),
    "trill": lambda: np.concatenate([tone(2200, 2300, 0.06), np.zeros(160)] * 6),
    "low": lambda: tone(700, 760, 0.4),
}


def recording(sings: bool, rng: np.random.RandomState) -> tuple[np.ndarray, list[float]]:
    """Sound, and when the bird sings."""
    sound = rng.randn(RATE * SECONDS) * 0.35
    sound += np.convolve(rng.randn(RATE * SECONDS), np.ones(40) / 40, mode="same")  # wind
    calls = list(rng.choice(["falling", "trill", "low"], size=rng.randint(2, 5)))
    calls += ["whistle"] * (rng.randint(1, 3) if sings else 0)
    when = []
    for call in calls:
        notes = CALLS[call]()
        at = rng.randint(len(sound) - len(notes))
        sound[at : at + len(notes)] += rng.uniform(0.8, 1.4) * notes
        if call == "whistle":
            when.append(at / RATE)
    return sound, when


def windows(sound: np.ndarray) -> np.ndarray:
    """(n, d): each quarter of a second as the loudness of 24 bands in three parts of it."""
    _, _, power = spectrogram(sound, RATE, nperseg=256, noverlap=256 - STEP)
    bands = np.log1p(power[: 24 * 4].reshape(24, 4, -1).mean(axis=1) * 1e4)
    parts = [bands[:, i : i + WIDTH] for i in range(0, bands.shape[1] - WIDTH, HOP)]
    return np.array([np.hstack([third.mean(axis=1) for third in np.array_split(p, 3, axis=1)]) for p in parts])


def main() -> None:
    folder = output_folder(__doc__)
    rng = np.random.RandomState(0)
    sings = np.arange(160) % 2
    sounds = [recording(bool(label), rng) for label in sings]
    bags = Bags([windows(sound) for sound, _ in sounds])
    model = RMISVC(random_state=0).fit(bags[:120], sings[:120])
    print(f"{model.score(bags[120:], sings[120:]):.0%} of 40 new recordings are right")

    figure = Figure(figsize=(9, 4.5), layout="constrained")
    panels = figure.subplots(2, 2, sharex=True, height_ratios=[2, 1])
    for column, i in zip(panels.T, (121, 122)):
        sound, when = sounds[i]
        frequencies, times, power = spectrogram(sound, RATE, nperseg=256, noverlap=256 - STEP)
        column[0].pcolormesh(times, frequencies / 1000, np.log1p(1e4 * power), cmap="Greys", rasterized=True)
        column[0].set_title(f"recording with the bird: {'yes' if sings[i] else 'no'}")
        p = model.instance_proba(bags[[i]])
        middle = (np.arange(len(p)) * HOP + WIDTH / 2) * STEP / RATE
        column[1].fill_between(middle, p, step="mid", color=POSITIVE if sings[i] else NEGATIVE)
        for at in when:
            column[0].axvspan(at, at + 0.5, color=POSITIVE, alpha=0.25, linewidth=0)
            column[0].text(at + 0.55, 3.6, "sings here (truth)", color=POSITIVE)
        if p.max() < 0.5:
            column[1].text(SECONDS / 2, 0.45, "no moment is taken for it", ha="center", color=NEGATIVE)
        column[1].set_ylim(0, 1)
        column[1].set_xlim(0, SECONDS)
        column[1].set_xlabel("seconds")
    panels[0, 0].set_ylabel("kHz")
    panels[1, 0].set_ylabel("probability\nfound")
    save(figure, folder / "birdsong.png")


if __name__ == "__main__":
    main()
