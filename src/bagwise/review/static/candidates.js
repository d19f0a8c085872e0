// The strip of candidates: small cut-outs of what the model would propose next.

import { same } from "./boxes.js";

const HEIGHT = 64, WIDEST = 110, SHOWN = 9;

export class Candidates {
  constructor(element, picture, onChoose) {
    this.element = element;
    this.picture = picture;
    this.list = [];
    element.addEventListener("click", (event) => {
      const button = event.target.closest("button");
      if (button) onChoose(Number(button.dataset.index));
    });
  }

  clear() {
    this.list = [];
    this.element.replaceChildren();
  }

  /** Cut the candidates out of the image, which must be loaded; those with a mask are dimmed around it. */
  show(boxes, imageWidth, masks) {
    this.list = boxes.slice(0, SHOWN);
    this.element.replaceChildren(...this.list.map((box, index) => this.cutOut(box, index, imageWidth, masks.cut(box))));
  }

  cutOut([x1, y1, x2, y2], index, imageWidth, mask) {
    const button = document.createElement("button");
    button.type = "button";
    button.dataset.index = index;
    button.setAttribute("aria-label", `Candidate ${index + 1}`);
    const canvas = document.createElement("canvas");
    const aspect = (x2 - x1) / (y2 - y1);
    canvas.height = HEIGHT;
    canvas.width = Math.max(20, Math.min(WIDEST, Math.round(HEIGHT * aspect)));
    const scale = this.picture.naturalWidth / imageWidth;
    if (scale) {
      // Very wide boxes are letterboxed rather than squeezed.
      const fit = Math.min(canvas.width / (x2 - x1), canvas.height / (y2 - y1));
      const width = (x2 - x1) * fit, height = (y2 - y1) * fit;
      const place = [(canvas.width - width) / 2, (canvas.height - height) / 2, width, height], pen = canvas.getContext("2d");
      pen.drawImage(this.picture, x1 * scale, y1 * scale, (x2 - x1) * scale, (y2 - y1) * scale, ...place);
      if (mask) pen.drawImage(mask, ...place);
    }
    const number = document.createElement("kbd");
    number.textContent = index + 1;
    button.append(canvas, number);
    return button;
  }

  /** Mark those that are among the boxes now. */
  mark(boxes) {
    this.list.forEach((candidate, index) => {
      this.element.children[index].setAttribute("aria-pressed", boxes.some((box) => same(box, candidate)));
    });
  }
}
