"""Made-up studio images: things on plain grounds, with exact masks.

VOC2007 and BSDS500 show scenes; hardly an image has one thin thing on a table, as in pictures taken to sell
or to count. So some of the images are made: cut-outs of real images by the teacher's map, or things put together of
rods, blades, rings and discs in unlike colours, on plain, shaded or grainy grounds. A thing put together is one figure.
"""

import cv2
import numpy as np


def studio_image(image: np.ndarray, target: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """One made-up image.

    Parameters
    ----------
    image : uint8 array (h, w, 3)
        A real image: the cut-out or the texture of what is put together comes from it.
    target : uint8 array (any size)
        The teacher's map of it.
    rng : Generator

    Returns
    -------
    image : uint8 array (h, w, 3)
    target : uint8 array (h, w)
    """
    height, width = image.shape[:2]
    figure = cv2.resize(target, (width, height)).astype(np.float32) / 255
    ground = _ground(height, width, rng)
    # A cut-out needs a teacher that was sure, and something that is whole: not cut by the frame.
    sure = (np.abs(figure - 0.5) > 0.4).mean() > 0.9 and 0.03 < (figure > 0.5).mean() < 0.5
    frame = np.concatenate([figure[[0, -1]].ravel(), figure[:, [0, -1]].ravel()])
    if sure and frame.max() < 0.3 and rng.random() < 0.5:
        front = image.astype(np.float32)
    else:
        front, figure = _put_together(image, rng)
    shadow = cv2.GaussianBlur(figure, (0, 0), rng.uniform(2, 12))
    shift = np.float32([[1, 0, rng.uniform(-10, 10)], [0, 1, rng.uniform(0, 12)]])
    shadow = cv2.warpAffine(shadow, shift, (width, height)) * rng.uniform(0, 0.5) * (rng.random() < 0.6)
    made = figure[..., None] * front + (1 - figure[..., None]) * ground * (1 - shadow[..., None])
    return np.clip(made, 0, 255).astype(np.uint8), np.round(figure * 255).astype(np.uint8)


def _ground(height: int, width: int, rng: np.random.Generator) -> np.ndarray:
    """A plain colour, often white or grey, shaded from one side to the other, grainy: float32 (h, w, 3)."""
    colour = rng.uniform(200, 255) * np.ones(3) if rng.random() < 0.5 else rng.uniform(20, 255, 3)
    y, x = np.mgrid[-1 : 1 : height * 1j, -1 : 1 : width * 1j].astype(np.float32)
    shade = 1 + rng.uniform(-0.3, 0.3) * x + rng.uniform(-0.3, 0.3) * y
    shade = shade if rng.random() < 0.6 else np.ones_like(shade)
    grain = rng.normal(0, 1, (height, width)).astype(np.float32)
    grain = cv2.GaussianBlur(grain, (0, 0), rng.uniform(0.5, 3)) * rng.uniform(0, 40) * (rng.random() < 0.5)
    return np.clip(shade[..., None] * colour + grain[..., None], 0, 255).astype(np.float32)


def _put_together(image: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Colours float32 (h, w, 3) and mask float32 (h, w) of a chain of parts, each beginning where one before ended."""
    height, width = image.shape[:2]
    size = min(height, width)
    front, mask = np.zeros((height, width, 3), np.float32), np.zeros((height, width), np.float32)
    spot = np.array([rng.uniform(0.2, 0.8) * width, rng.uniform(0.2, 0.8) * height])
    angle = rng.uniform(0, 2 * np.pi)
    for _ in range(rng.integers(1, 5)):
        part = np.zeros((height, width), np.uint8)
        spot, angle = _draw_part(part, spot, angle, size, rng)
        alpha = cv2.GaussianBlur(part.astype(np.float32) / 255, (0, 0), 0.7)
        paint = image.astype(np.float32) if rng.random() < 0.3 else rng.uniform(0, 255, 3) + 0 * image
        # Light from one side, so that parts are not flat.
        light = cv2.GaussianBlur(alpha, (0, 0), max(1.0, size * rng.uniform(0.005, 0.03)))
        paint = paint * (0.6 + 0.5 * light[..., None])
        front = alpha[..., None] * paint + (1 - alpha[..., None]) * front
        mask = np.maximum(mask, alpha)
    return front, mask


def _draw_part(
    part: np.ndarray, spot: np.ndarray, angle: float, size: int, rng: np.random.Generator
) -> tuple[np.ndarray, float]:
    """Draw a rod, blade, ring, disc or block at ``spot``; return where and in which direction the next one begins."""
    kind = rng.choice(["rod", "blade", "ring", "disc", "block"], p=[0.35, 0.2, 0.15, 0.1, 0.2])
    along = np.array([np.cos(angle), np.sin(angle)])
    across = np.array([-along[1], along[0]])
    length = size * rng.uniform(0.2, 0.8)
    # Turned back where the part would leave the image: things in a studio are whole.
    end = spot + length * along
    if (end < 0).any() or (end > part.shape[::-1]).any():
        angle, along, across = angle + np.pi, -along, -across
        end = np.clip(spot + length * along, 0.04 * size, np.array(part.shape[::-1]) - 0.04 * size)
    point = lambda place: tuple(round(float(v)) for v in place)  # noqa: E731
    if kind == "rod":
        cv2.line(part, point(spot), point(end), 255, max(2, int(size * rng.uniform(0.01, 0.1))), cv2.LINE_AA)
    elif kind == "blade":
        half = size * rng.uniform(0.01, 0.06)
        corners = [spot + half * across, spot - half * across, end]
        cv2.fillPoly(part, [np.round(corners).astype(np.int32)], 255, cv2.LINE_AA)
    elif kind == "block":
        first, last = size * rng.uniform(0.03, 0.15, 2)
        corners = [spot + first * across, spot - first * across, end - last * across, end + last * across]
        cv2.fillPoly(part, [np.round(corners).astype(np.int32)], 255, cv2.LINE_AA)
    else:
        radius = size * rng.uniform(0.05, 0.2)
        axes = point((radius, radius * rng.uniform(0.5, 1)))
        thick = -1 if kind == "disc" else max(2, int(radius * rng.uniform(0.1, 0.5)))
        centre = spot + radius * along
        cv2.ellipse(part, point(centre), axes, np.rad2deg(angle), 0, 360, 255, thick, cv2.LINE_AA)
        end = spot + rng.uniform(0, 1) * radius * along
    return (end if rng.random() < 0.7 else spot), angle + rng.choice([0, 0.4, -0.4, np.pi / 2, np.pi])
