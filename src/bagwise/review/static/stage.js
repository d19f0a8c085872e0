// The large image with its boxes: shows, selects, moves, resizes and draws them; knows nothing of decisions.

import { moved, resized, rounded, upright } from "./boxes.js";

const SIDES = ["nw", "n", "ne", "e", "se", "s", "sw", "w"];
const DRAG_STARTS_AFTER = 4; // screen pixels: less is a click
const LARGEST_ZOOM = 16;

export class Stage {
  /** onEdit(boxes) is called once at the end of every change made by hand, onDraw(boxes) whenever they look different. */
  constructor({ stage, canvas, picture, layer, message, onEdit, onSelect, onDraw }) {
    Object.assign(this, { stage, canvas, picture, layer, message, onEdit, onSelect, onDraw });
    this.boxes = [];
    this.selected = -1;
    this.drawing = false;
    this.ready = false; // for hands; the page says so when image and boxes are there
    this.shown = 0; // counts the calls of show(), so that a late one notices that it has been overtaken
    this.size = [1, 1];
    this.view = { zoom: 1, x: 0.5, y: 0.5 };
    this.pointers = new Map();
    new ResizeObserver(() => this.place()).observe(stage);
    stage.addEventListener("pointerdown", (event) => this.pointerDown(event));
    stage.addEventListener("pointermove", (event) => this.pointerMove(event));
    stage.addEventListener("pointerup", (event) => this.pointerUp(event));
    stage.addEventListener("pointercancel", (event) => this.pointerUp(event, true));
    stage.addEventListener("wheel", (event) => {
      event.preventDefault();
      this.zoomBy(Math.exp(-event.deltaY * (event.deltaMode ? 0.05 : 0.0015)), event);
    }, { passive: false });
    picture.draggable = false;
  }

  /** Show an image; resolves when it is on screen, or when it is certain that it cannot be. */
  async show(source, width, height, description) {
    const turn = ++this.shown;
    this.ready = false;
    this.size = [width, height];
    this.view = { zoom: 1, x: 0.5, y: 0.5 };
    this.cancel();
    this.message.hidden = true;
    this.place();
    if (this.picture.getAttribute("src") !== source) {
      this.picture.classList.add("loading");
      this.picture.src = source;
    }
    this.picture.alt = description;
    try {
      await this.picture.decode();
    } catch {
      if (turn !== this.shown) return;
      const reason = await why(source);
      if (turn !== this.shown) return;
      this.message.textContent = reason;
      this.message.hidden = false;
    }
    if (turn !== this.shown) return;
    this.picture.classList.remove("loading");
  }

  setBoxes(boxes, selected = boxes.length === 1 ? 0 : -1) {
    this.boxes = boxes.map((box) => [...box]);
    this.select(selected);
  }

  select(index) {
    this.selected = index < this.boxes.length ? index : -1;
    this.drawBoxes();
    this.onSelect(this.target);
  }

  setDrawing(on) {
    this.drawing = on;
    this.stage.classList.toggle("drawing", on);
  }

  /** Fit the image into the stage, then apply zoom and pan. */
  place() {
    const [width, height] = this.size;
    const roomX = this.stage.clientWidth - 24, roomY = this.stage.clientHeight - 24;
    const fit = Math.min(roomX / width, roomY / height, 4);
    this.scale = Math.max(fit * this.view.zoom, 1e-3);
    const shownX = width * this.scale, shownY = height * this.scale;
    const at = (middle, shown, room) =>
      shown <= room ? (room - shown) / 2 : Math.min(0, Math.max(room - shown, room / 2 - middle * shown));
    const left = at(this.view.x, shownX, roomX), top = at(this.view.y, shownY, roomY);
    Object.assign(this.canvas.style, { left: `${left + 12}px`, top: `${top + 12}px`, width: `${shownX}px`, height: `${shownY}px` });
  }

  zoomBy(factor, where) {
    const rect = this.canvas.getBoundingClientRect(), outer = this.stage.getBoundingClientRect();
    const x = where?.clientX ?? outer.x + outer.width / 2, y = where?.clientY ?? outer.y + outer.height / 2;
    const u = (x - rect.x) / rect.width, v = (y - rect.y) / rect.height;
    const zoom = Math.min(Math.max(this.view.zoom * factor, 1), LARGEST_ZOOM);
    const grown = zoom / this.view.zoom;
    // The point under the pointer stays where it is.
    this.view = {
      zoom,
      x: u - (x - outer.x - outer.width / 2) / (rect.width * grown),
      y: v - (y - outer.y - outer.height / 2) / (rect.height * grown),
    };
    this.place();
  }

  zoomReset() {
    this.view = { zoom: 1, x: 0.5, y: 0.5 };
    this.place();
  }

  toImage(event) {
    const rect = this.canvas.getBoundingClientRect();
    return [(event.clientX - rect.x) / this.scale, (event.clientY - rect.y) / this.scale];
  }

  pointerDown(event) {
    if (event.target.closest("button")) return;
    this.pointers.set(event.pointerId, event);
    this.stage.setPointerCapture(event.pointerId);
    if (this.pointers.size === 2) {
      this.cancel();
      this.pinch = this.pinchState();
      return;
    }
    if (event.button === 1) {
      event.preventDefault();
      this.drag = { kind: "pan", last: event };
      return;
    }
    if (event.button !== 0 || !this.ready || this.drag) return;
    const handle = event.target.closest(".handle"), box = event.target.closest(".box");
    const start = this.toImage(event), index = box ? Number(box.dataset.index) : -1;
    if (this.drawing || index < 0) this.drag = { kind: "draw", start, from: event, before: this.selected };
    else this.drag = { kind: handle ? handle.dataset.side : "move", start, from: event, index, box: this.boxes[index], before: this.selected };
    if (index >= 0 && !this.drawing) this.select(index);
  }

  pointerMove(event) {
    if (!this.pointers.has(event.pointerId)) return;
    this.pointers.set(event.pointerId, event);
    if (this.pinch) return this.pinchMove();
    const drag = this.drag;
    if (!drag) return;
    if (drag.kind === "pan") {
      this.panBy(event.clientX - drag.last.clientX, event.clientY - drag.last.clientY);
      drag.last = event;
      return;
    }
    if (!drag.moving && Math.hypot(event.clientX - drag.from.clientX, event.clientY - drag.from.clientY) < DRAG_STARTS_AFTER) return;
    const [x, y] = this.toImage(event), [x0, y0] = drag.start, [width, height] = this.size;
    if (drag.kind === "draw") {
      if (!drag.moving) this.boxes.push([0, 0, 0, 0]);
      drag.index = this.boxes.length - 1;
      this.boxes[drag.index] = upright([x0, y0, x, y], width, height);
      this.selected = drag.index;
    } else if (drag.kind === "move") this.boxes[drag.index] = moved(drag.box, x - x0, y - y0, width, height);
    else this.boxes[drag.index] = resized(drag.box, drag.kind, x - x0, y - y0, width, height);
    drag.moving = true;
    this.drawBoxes();
  }

  pointerUp(event, cancelled = false) {
    this.pointers.delete(event.pointerId);
    if (this.pinch) {
      if (!this.pointers.size) this.pinch = undefined;
      return;
    }
    if (cancelled) return this.cancel();
    const drag = this.drag;
    this.drag = undefined;
    if (!drag || drag.kind === "pan") return;
    if (drag.moving) {
      this.boxes[drag.index] = rounded(this.boxes[drag.index]);
      this.select(drag.index);
      this.onEdit(this.boxes);
    } else if (drag.kind === "draw" && !this.drawing) this.select(-1);
  }

  /** Give up a drag under way; says whether there was one. */
  cancel() {
    const drag = this.drag;
    this.drag = undefined;
    if (!drag?.moving) return false;
    if (drag.kind === "draw") this.boxes.pop();
    else this.boxes[drag.index] = drag.box;
    this.select(drag.before);
    return true;
  }

  panBy(dx, dy) {
    this.view.x -= dx / (this.size[0] * this.scale);
    this.view.y -= dy / (this.size[1] * this.scale);
    this.place();
  }

  pinchState() {
    const [a, b] = [...this.pointers.values()];
    return { x: (a.clientX + b.clientX) / 2, y: (a.clientY + b.clientY) / 2, apart: Math.hypot(a.clientX - b.clientX, a.clientY - b.clientY) };
  }

  pinchMove() {
    if (this.pointers.size < 2) return;
    const now = this.pinchState();
    this.panBy(now.x - this.pinch.x, now.y - this.pinch.y);
    this.zoomBy(now.apart / Math.max(1, this.pinch.apart), { clientX: now.x, clientY: now.y });
    this.pinch = now;
  }

  /** The box that keys act on: the selected one, or the only one. */
  get target() {
    return this.selected >= 0 ? this.selected : this.boxes.length === 1 ? 0 : -1;
  }

  nudge(dx, dy, resize) {
    const index = this.target;
    if (index < 0) return;
    const [width, height] = this.size, step = Math.max(1, Math.round(Math.max(width, height) / 200));
    const box = this.boxes[index];
    const change = resize ? resized(box, "se", dx * step, dy * step, width, height) : moved(box, dx * step, dy * step, width, height);
    this.boxes[index] = rounded(change);
    this.drawBoxes();
    this.onEdit(this.boxes);
  }

  removeSelected() {
    const index = this.target;
    if (index < 0) return;
    this.boxes.splice(index, 1);
    this.select(this.boxes.length === 1 ? 0 : -1);
    this.onEdit(this.boxes);
  }

  drawBoxes() {
    this.onDraw(this.boxes);
    const [width, height] = this.size;
    while (this.layer.children.length > this.boxes.length) this.layer.lastChild.remove();
    while (this.layer.children.length < this.boxes.length) this.layer.append(makeBox());
    this.boxes.forEach(([x1, y1, x2, y2], index) => {
      const element = this.layer.children[index];
      element.dataset.index = index;
      element.classList.toggle("selected", index === this.selected);
      element.setAttribute("aria-label", `Box ${index + 1} of ${this.boxes.length}${index === this.selected ? ", selected" : ""}`);
      element.firstChild.textContent = this.boxes.length > 1 ? index + 1 : "";
      Object.assign(element.style, {
        left: `${(100 * x1) / width}%`, top: `${(100 * y1) / height}%`,
        width: `${(100 * (x2 - x1)) / width}%`, height: `${(100 * (y2 - y1)) / height}%`,
      });
    });
  }
}

function makeBox() {
  const box = document.createElement("div");
  box.className = "box";
  box.setAttribute("role", "img");
  const tag = document.createElement("span");
  tag.className = "tag";
  box.append(tag);
  for (const side of SIDES) {
    const handle = document.createElement("span");
    handle.className = `handle ${side}`;
    handle.dataset.side = side;
    box.append(handle);
  }
  return box;
}

/** An <img> does not say why it failed; asking again does. */
async function why(source) {
  try {
    const response = await fetch(source);
    if (response.ok) return "This image cannot be shown.";
    return `This image cannot be shown: ${(await response.json()).error}.`;
  } catch {
    return "This image cannot be shown while the server is away.";
  }
}
