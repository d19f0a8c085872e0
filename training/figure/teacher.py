"""Write the teacher's map of every image.

    python teacher.py --voc VOC2007 --bsds BSDS500 --model u2netp.onnx --out MAPS [--part 0/2]

One uint8 (320, 320) array an image. Maps that exist are kept, so an interrupted run resumes; ``--part i/n`` takes every
n-th image, to run several processes side by side.
"""

import argparse
from pathlib import Path

import numpy as np
import onnx
from photos import find_images
from PIL import Image
from trunk import open_session

MEAN, DEVIATION = np.array([0.485, 0.456, 0.406], np.float32), np.array([0.229, 0.224, 0.225], np.float32)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--voc", required=True)
    parser.add_argument("--bsds", required=True)
    parser.add_argument("--model", required=True, help="U2-Netp as ONNX")
    parser.add_argument("--out", required=True, type=Path)
    parser.add_argument("--part", default="0/1")
    options = parser.parse_args()

    session = open_session(onnx.load(options.model))
    options.out.mkdir(parents=True, exist_ok=True)
    learned, held_out = find_images(options.voc, options.bsds)
    first, every = map(int, options.part.split("/"))
    chosen = [*held_out, *learned][first::every]
    for done, path in enumerate(chosen, 1):
        output = options.out / f"{path.stem}.npy"
        if not output.exists():
            with Image.open(path) as opened:
                image = np.asarray(opened.convert("RGB").resize((320, 320), Image.Resampling.BILINEAR), np.float32)
            scaled = (image / max(image.max(), 1) - MEAN) / DEVIATION
            figure = session.run(None, {session.get_inputs()[0].name: scaled.transpose(2, 0, 1)[None]})[0][0, 0]
            aside = output.with_suffix(".part.npy")
            np.save(aside, np.round(figure * 255).astype(np.uint8))
            aside.replace(output)
        if done % 100 == 0:
            print(f"{done} of {len(chosen)}", flush=True)


if __name__ == "__main__":
    main()
