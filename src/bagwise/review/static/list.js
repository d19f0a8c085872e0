// The list of images: only the rows on screen exist, so five thousand cost as much as twenty.

import { OPEN, STATUS_NAMES } from "./store.js";
import { visible } from "./text.js";

const MARKS = ["", "✓", "✕", "⊘"], MARKS_SAID = ["to check", "accepted", "rejected", "wrong label"]; // by status
const ROW = 76, SPARE = 4, THUMB_WIDTH = 84, THUMB_HEIGHT = 60;

export class VirtualList {
  constructor(element, store, onChoose) {
    this.element = element;
    this.store = store;
    this.current = undefined;
    this.rows = new Map();
    this.spacer = document.createElement("div");
    this.spacer.className = "spacer";
    element.append(this.spacer);
    this.lastTop = 0;
    element.addEventListener("scroll", () => this.schedule());
    new ResizeObserver(() => this.schedule()).observe(element);
    element.addEventListener("click", (event) => {
      const row = event.target.closest(".row");
      if (row) onChoose(Number(row.dataset.item));
    });
  }

  schedule() {
    this.frame ??= requestAnimationFrame(() => {
      this.frame = undefined;
      this.draw();
    });
  }

  /** Draw again from the store: after filtering, or when items changed. */
  refresh() {
    this.spacer.style.height = `${this.store.order.length * ROW}px`;
    this.draw();
  }

  select(id) {
    this.current = id;
    const position = this.store.position(id);
    if (position >= 0) {
      const top = position * ROW, height = this.element.clientHeight;
      const above = top < this.element.scrollTop + ROW, below = top + 2 * ROW > this.element.scrollTop + height;
      // Keep a row of what comes next in view; far jumps land in the middle.
      if (above || below) this.element.scrollTop = Math.max(0, above && !below ? top - ROW : top - height + 2.5 * ROW);
    }
    this.element.setAttribute("aria-activedescendant", position >= 0 ? `row-${id}` : "");
    this.draw();
  }

  draw() {
    const { order } = this.store;
    const top = this.element.scrollTop, height = this.element.clientHeight;
    const first = Math.max(0, Math.floor(top / ROW) - SPARE);
    const last = Math.min(order.length, Math.ceil((top + height) / ROW) + SPARE);
    // A list flying by does not ask for every picture it passes.
    const flying = Math.abs(top - this.lastTop) > height;
    this.lastTop = top;
    const wanted = new Map();
    for (let position = first; position < last; position++) wanted.set(order[position], position);
    for (const [id, row] of this.rows) {
      if (!wanted.has(id)) {
        row.remove();
        this.rows.delete(id);
      }
    }
    let place = this.spacer.firstChild; // in the document, too, rows follow the order of the list
    for (const [id, position] of wanted) {
      let row = this.rows.get(id);
      if (!row) {
        row = makeRow(id);
        this.rows.set(id, row);
      }
      if (row === place) place = place.nextSibling;
      else this.spacer.insertBefore(row, place);
      this.fill(row, this.store.items[id], position, flying);
    }
    clearTimeout(this.settled);
    if (flying) this.settled = setTimeout(() => this.draw(), 90);
  }

  fill(row, item, position, flying) {
    row.style.transform = `translateY(${position * ROW}px)`;
    row.setAttribute("aria-posinset", position + 1);
    row.setAttribute("aria-setsize", this.store.order.length);
    row.setAttribute("aria-selected", item.id === this.current);
    row.dataset.status = STATUS_NAMES[item.status];
    const { image, frame, box, name, label, mark, meter } = row.parts;
    const scale = Math.min(THUMB_WIDTH / item.width, THUMB_HEIGHT / item.height);
    frame.style.width = `${item.width * scale}px`;
    frame.style.height = `${item.height * scale}px`;
    const source = this.store.thumbnail(item);
    if (!flying && image.getAttribute("src") !== source) image.src = source;
    box.hidden = !item.box;
    if (item.box) {
      const [x1, y1, x2, y2] = item.box;
      box.style.left = `${(100 * x1) / item.width}%`;
      box.style.top = `${(100 * y1) / item.height}%`;
      box.style.width = `${(100 * (x2 - x1)) / item.width}%`;
      box.style.height = `${(100 * (y2 - y1)) / item.height}%`;
    }
    name.textContent = visible(item.file.slice(item.file.lastIndexOf("/") + 1));
    row.title = visible(item.file);
    label.textContent = visible(this.store.className(item));
    mark.textContent = item.status === OPEN && item.edited ? "✎" : MARKS[item.status];
    mark.setAttribute("aria-label", item.status === OPEN && item.edited ? "changed, to check" : MARKS_SAID[item.status]);
    meter.hidden = item.status !== OPEN;
    meter.firstChild.style.width = `${Math.round(item.confidence * 100)}%`;
    meter.setAttribute("aria-label", `confidence ${item.said}`);
  }
}

function makeRow(id) {
  const row = element("div", "row");
  row.id = `row-${id}`;
  row.dataset.item = id;
  row.setAttribute("role", "option");
  const thumb = element("div", "thumb"), frame = element("div", "frame"), box = element("div", "mini");
  const image = element("img");
  image.alt = "";
  image.decoding = "async";
  image.draggable = false;
  frame.append(image, box);
  thumb.append(frame);
  const text = element("div", "text"), label = element("strong", "label"), name = element("span", "name");
  const meter = element("span", "meter");
  meter.setAttribute("role", "img");
  meter.append(element("span"));
  text.append(label, name, meter);
  const mark = element("span", "mark");
  mark.setAttribute("role", "img");
  row.append(thumb, text, mark);
  row.parts = { image, frame, box, name, label, mark, meter };
  return row;
}

function element(tag, className = "") {
  const made = document.createElement(tag);
  made.className = className;
  return made;
}
