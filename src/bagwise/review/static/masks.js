// Masks over the image: read from COCO's compressed run lengths, shown for the boxes that they belong to.

import { overlap, same } from "./boxes.js";

const FINEST = 1000; // pixels of the longer side of a drawn mask: finer than a screen shows
const TINT = 0x50ffd035, RIM = 0xebffd035; // alpha, blue, green, red: as a little-endian machine keeps pixels
const DIMMED = 150; // alpha, of 255
const SAME_OBJECT = 0.5;

/** Lengths of the runs of zeros and ones, in turns, column by column; see pycocotools for the code. */
export function runLengths(counts) {
  const lengths = [];
  for (let place = 0; place < counts.length;) {
    let value = 0, shift = 0, group;
    do {
      group = counts.charCodeAt(place++) - 48;
      value |= (group & 31) << shift;
      shift += 5;
    } while (group & 32);
    if (group & 16) value |= -1 << shift;
    lengths.push(lengths.length > 2 ? value + lengths[lengths.length - 2] : value);
  }
  return lengths;
}

/** A mask as rows of 0 and 1, scale times as large as the image: { width, height, bits }. */
export function decode(counts, imageWidth, imageHeight, scale = 1) {
  const width = Math.max(1, Math.round(imageWidth * scale)), height = Math.max(1, Math.round(imageHeight * scale));
  const bits = new Uint8Array(width * height);
  const across = imageWidth / width, down = imageHeight / height;
  const lengths = runLengths(counts);
  for (let turn = 0, start = 0; turn < lengths.length; start += lengths[turn++]) {
    const stop = start + lengths[turn];
    if (turn % 2 === 0) continue;
    for (let at = start; at < stop;) {
      const x = Math.floor(at / imageHeight), end = Math.min(stop, (x + 1) * imageHeight);
      // Every pixel drawn shows the pixel of the image under its middle.
      const column = Math.ceil(x / across - 0.5);
      if (column < width && Math.floor((column + 0.5) * across) === x) {
        const first = Math.ceil((at - x * imageHeight) / down - 0.5), last = Math.ceil((end - x * imageHeight) / down - 0.5);
        for (let row = first; row < last; row++) bits[row * width + column] = 1;
      }
      at = end;
    }
  }
  return { width, height, bits };
}

export class Masks {
  constructor(canvas, button) {
    Object.assign(this, { canvas, button, shown: sessionStorage.getItem("bagwise-masks") !== "off", masks: [] });
    this.clear();
  }

  clear() {
    this.set([], [], 1, 1);
  }

  /** Take the masks of an item's candidates; an empty text means that there is none. */
  set(candidates, masks, width, height) {
    this.scale = Math.min(1, FINEST / Math.max(width, height));
    this.size = [width, height];
    this.masks = candidates.map((box, index) => ({ box, counts: masks[index] })).filter(({ counts }) => counts);
    this.button.hidden = !this.masks.length;
    this.button.setAttribute("aria-pressed", this.shown);
    this.draw([]);
  }

  toggle() {
    this.shown = !this.shown;
    sessionStorage.setItem("bagwise-masks", this.shown ? "on" : "off");
    this.button.setAttribute("aria-pressed", this.shown);
    this.draw(this.boxes);
  }

  /** The mask that goes with a box: that of the candidate most like it. */
  of(box) {
    let best, most = 0;
    for (const mask of this.masks) {
      const alike = overlap(mask.box, box);
      if (alike >= SAME_OBJECT && alike > most) [best, most] = [mask, alike];
    }
    if (best) best.decoded ??= decode(best.counts, ...this.size, this.scale);
    return best;
  }

  /** What lies in a candidate's box but not in its mask, dark, as a picture of the box; undefined where there is no mask. */
  cut(box) {
    const mask = this.masks.find((each) => same(each.box, box));
    if (!mask) return undefined;
    const { width, bits } = this.of(box).decoded, [left, top, right, bottom] = box.map((side) => Math.round(side * this.scale));
    const cut = Object.assign(document.createElement("canvas"), { width: Math.max(1, right - left), height: Math.max(1, bottom - top) });
    const pen = cut.getContext("2d"), picture = pen.createImageData(cut.width, cut.height);
    for (let y = 0, i = 3; y < cut.height; y++) {
      for (let x = 0; x < cut.width; x++, i += 4) picture.data[i] = bits[(top + y) * width + left + x] ? 0 : DIMMED;
    }
    pen.putImageData(picture, 0, 0);
    return cut;
  }

  /** Draw the masks of these boxes, each inside of its box. */
  draw(boxes) {
    this.boxes = boxes;
    const found = this.shown ? boxes.map((box) => ({ box, mask: this.of(box) })).filter(({ mask }) => mask) : [];
    this.canvas.hidden = !found.length;
    if (!found.length) return;
    const { width, height } = found[0].mask.decoded, bits = new Uint8Array(width * height);
    for (const { box, mask } of found) {
      const whole = same(box, mask.box); // the model's own box: the mask may reach over its sides by a pixel
      const [x1, y1, x2, y2] = whole ? [0, 0, width, height] : box.map((side) => Math.round(side * this.scale));
      for (let y = Math.max(0, y1); y < Math.min(height, y2); y++) {
        for (let x = Math.max(0, x1); x < Math.min(width, x2); x++) bits[y * width + x] |= mask.decoded.bits[y * width + x];
      }
    }
    paint(this.canvas, { width, height, bits });
  }
}

/** Tint what a mask covers, and draw its rim. */
function paint(canvas, { width, height, bits }) {
  Object.assign(canvas, { width, height });
  const pen = canvas.getContext("2d"), picture = pen.createImageData(width, height), pixels = new Uint32Array(picture.data.buffer);
  for (let y = 0, i = 0; y < height; y++) {
    for (let x = 0; x < width; x++, i++) {
      if (!bits[i]) continue;
      const inner = x && bits[i - 1] && x + 1 < width && bits[i + 1] && bits[i - width] && bits[i + width];
      pixels[i] = inner ? TINT : RIM;
    }
  }
  pen.putImageData(picture, 0, 0);
}
