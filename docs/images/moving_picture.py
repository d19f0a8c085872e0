"""The README's moving picture: labels in, boxes out, corrections on the review page, boxes after the refit.

make demo
.venv/bin/python docs/images/moving_picture.py demo-out

Everything shown is a real run: the boxes are the demo's, the page is `bagwise review` in Chromium, the keys are pressed
and the refit is done. It works on a copy of the run. The true boxes are only used to find answers worth correcting.
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageDraw, ImageFont
from playwright.sync_api import sync_playwright

from bagwise import Discovery
from bagwise.datasets import load_demo_photos
from bagwise.discovery.evaluation.runs import truth_of
from bagwise.discovery.run.folder import RunFolder, corners
from bagwise.discovery.sources.reading import read_source
from bagwise.metrics import iou

SIZE, CAPTION = (960, 560), 44  # of a frame without its caption; height of the caption
CELLS = (4, 2)
PAGE = {"width": 1280, "height": 747}
INK, PAPER, BOX = "#1b262c", "#fff3c4", "#ff6d00"
CORRECTIONS = 3
LARGEST = 2_000_000  # bytes
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
Frame = tuple[Image.Image, int]  # the picture, and for how many milliseconds it is shown


def captioned(picture: Image.Image, text: str) -> Image.Image:
    """The picture below a line of text."""
    frame = Image.new("RGB", (SIZE[0], SIZE[1] + CAPTION), PAPER)
    frame.paste(picture.convert("RGB").resize(SIZE, Image.Resampling.LANCZOS), (0, CAPTION))
    ImageDraw.Draw(frame).text((16, CAPTION / 2), text, fill=INK, anchor="lm", font=ImageFont.load_default(22))
    return frame


def sheet(found: Discovery, items: list[tuple[str, str]], framed: int) -> Image.Image:
    """Images with their labels; the first of them with their boxes too."""
    boxes = {(box.file, box.label): box for box in reversed(found.boxes)}
    width, height = SIZE[0] // CELLS[0], SIZE[1] // CELLS[1]
    drawn = Image.new("RGB", SIZE, "white")
    for place, (file, label) in enumerate(items):
        image = Image.open(found.run.image_path(file)).convert("RGB")
        factor = min((width - 8) / image.width, (height - 8) / image.height)
        image = image.resize((round(image.width * factor), round(image.height * factor)), Image.Resampling.LANCZOS)
        pen = ImageDraw.Draw(image)
        if place < framed and (file, label) in boxes:
            box = boxes[file, label]
            pen.rectangle([value * factor for value in box[2:6]], outline=BOX, width=4)
        font = ImageFont.load_default(17)
        pen.rectangle((0, 0, pen.textlength(label, font=font) + 12, 25), fill=PAPER)
        pen.text((6, 12), label, fill=INK, anchor="lm", font=font)
        column, row = place % CELLS[0], place // CELLS[0]
        x, y = column * width + (width - image.width) // 2, row * height + (height - image.height) // 2
        drawn.paste(image, (x, y))
    return drawn


def worth_correcting(run: RunFolder) -> dict[str, list[tuple[str, int]]]:
    """Of each class the images of one object whose answer is wrong while a candidate is right, with its key."""
    truth = truth_of(run, read_source(load_demo_photos().truth))
    files = run.images["file"].to_pylist()
    candidates: dict[tuple[str, str], list[np.ndarray]] = {}
    rows = zip(run.boxes["image_id"].to_pylist(), run.boxes["label"].to_pylist(), run.boxes["rank"].to_pylist())
    for (image_id, label, _), box in sorted(zip(rows, corners(run.boxes)), key=lambda row: row[0]):
        candidates.setdefault((files[image_id - 1], label), []).append(box)
    found: dict[str, list[tuple[str, int]]] = {}
    for (file, label), boxes in candidates.items():
        true = np.array([t.box for t in truth.get(file, []) if t.label == label], dtype=np.float32)
        if len(true) == 1:
            right = np.flatnonzero(iou(np.array(boxes[:9], dtype=np.float32), true).max(axis=1) > 0.5)
            if len(right) and right[0] > 0:
                found.setdefault(label, []).append((file, int(right[0]) + 1))
    return found


def chosen(run: RunFolder, wrong: dict[str, list[tuple[str, int]]]) -> tuple[str, list[tuple[str, str]]]:
    """The class that is corrected, and eight images: four of that class, two of two others each."""
    # The class with most to correct; of those, the one whose right candidates come first.
    corrected = max(wrong, key=lambda label: (len(wrong[label]), -sum(key for _, key in wrong[label])))
    of_class = {
        label: [row["file"] for row in run.images.to_pylist() if label in row["labels"]] for label in run.classes
    }
    first = [file for file, _ in wrong[corrected]]
    story = sorted(of_class[corrected], key=lambda file: file not in first)[:4]
    sure: dict[str, list[float]] = {label: [] for label in run.classes}
    for box in Discovery(run).boxes:
        sure[box.label].append(box.confidence)
    others = sorted((label for label in run.classes if label != corrected), key=lambda label: -np.mean(sure[label]))
    return corrected, [(f, corrected) for f in story] + [
        (f, label) for label in others[:2] for f in of_class[label][:2]
    ]


@contextmanager
def served(run: RunFolder) -> Iterator[str]:
    """The address of the run's review page, started as a person starts it."""
    command = [sys.executable, "-m", "bagwise", "review", str(run.path), "--port", "0", "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            yield server.stdout.readline().split("Review page: ")[1].strip()
        finally:
            server.terminate()


def review(url: str, label: str, wrong: list[tuple[str, int]]) -> Iterator[Frame]:
    """Correct some answers on the page, refit, and look."""
    with sync_playwright() as driver:
        chromium = shutil.which("chromium") or shutil.which("chromium-browser")
        browser = driver.chromium.launch(executable_path=chromium, args=FLAGS)
        page = browser.new_page(viewport=PAGE, color_scheme="light")
        page.set_default_timeout(120_000)
        page.goto(url)
        page.wait_for_selector("#list [role=option]")
        for number, (file, key) in enumerate(wrong[:CORRECTIONS]):
            show(page, label, file)
            yield shot(page, "bagwise review: is the box right?"), 1500 if number == 0 else 700
            page.keyboard.press(str(key))
            page.wait_for_timeout(500)
            yield shot(page, f"No: key {key} takes another candidate, Enter accepts"), 1500 if number == 0 else 700
            page.keyboard.press("Enter")
            page.wait_for_timeout(700)
        page.click("#refit")
        page.wait_for_timeout(300)
        yield shot(page, "Refit: the class is learned again with what you decided"), 1400
        page.wait_for_selector("#refit:not(.busy)", timeout=300_000)
        page.wait_for_timeout(1000)
        browser.close()


def show(page: Any, label: str, file: str) -> None:
    """Bring an image onto the screen, among the others of its class."""
    options = page.locator("#class-filter option").all_inner_texts()
    page.select_option("#class-filter", label=next(text for text in options if text.startswith(label)))
    page.locator("#list [role=option]", has_text=Path(file).name).first.click()
    page.wait_for_timeout(1500)


def shot(page: Any, text: str) -> Image.Image:
    """The page as it is now."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "page.png"
        page.screenshot(path=path)
        return captioned(Image.open(path), text)


def frames(demo: Path) -> Iterator[Frame]:
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(demo / "run", Path(folder) / "run")
        run = RunFolder(Path(folder) / "run")
        wrong = worth_correcting(run)
        print({label: [f"{file} (key {key})" for file, key in members] for label, members in wrong.items()})
        corrected, items = chosen(run, wrong)
        found = Discovery(run)
        yield captioned(sheet(found, items, 0), "You have images, and know what each shows"), 1800
        for framed in range(1, len(items)):
            yield captioned(sheet(found, items, framed), "bagwise discover: where it is"), 150
        yield captioned(sheet(found, items, len(items)), "bagwise discover: where it is. Nobody has drawn a box"), 2200
        with served(run) as url:
            yield from review(url, corrected, wrong[corrected])
        after = Discovery(run.path)
        yield captioned(sheet(after, items, len(items)), "After the refit. Export to COCO, YOLO, VOC, ..."), 2600


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("demo", type=Path, help="the folder that bagwise demo wrote")
    parser.add_argument("-o", "--output", type=Path, default=Path(__file__).with_name("moving-picture.webp"))
    parser.add_argument("--frames", type=Path, default=None, help="also write every frame into this folder, to look at")
    options = parser.parse_args()
    pictures, durations = zip(*frames(options.demo))
    if options.frames is not None:
        options.frames.mkdir(parents=True, exist_ok=True)
        for number, picture in enumerate(pictures):
            picture.save(options.frames / f"{number:02d}.png")
    pictures[0].save(
        options.output,
        save_all=True,
        append_images=pictures[1:],
        duration=list(durations),
        loop=0,
        quality=70,
        method=6,
    )
    size = options.output.stat().st_size
    if size > LARGEST:
        raise SystemExit(f"{options.output} has {size} bytes, more than {LARGEST}: lower its quality")
    print(f"{options.output}: {len(pictures)} frames, {size} bytes")


if __name__ == "__main__":
    main()
