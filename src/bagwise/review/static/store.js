// What the page knows: the items, how they are filtered and sorted, and the details of those near the current one.

import { get } from "./api.js";

export const OPEN = 0, ACCEPTED = 1, REJECTED = 2, ABSENT = 3;
export const STATUS = { open: OPEN, accepted: ACCEPTED, rejected: REJECTED, absent: ABSENT };
export const STATUS_NAMES = Object.keys(STATUS);

export class Store {
  constructor() {
    this.items = [];
    this.order = [];
    this.details = new Map();
    this.seq = 0;
    this.generation = "";
  }

  async load() {
    const index = await get("/api/index");
    Object.assign(this, {
      run: index.run, key: index.key, classes: index.classes, images: index.images,
      seq: index.seq, generation: index.generation, canRefit: index.can_refit, refit: index.refit,
    });
    this.items = index.items.map((row, id) => this.readRow({ id }, row));
    this.details.clear();
  }

  readRow(item, [imageId, label, confidence, status, version, edited, box, said, listed]) {
    const [file, width, height] = this.images[imageId - 1];
    return Object.assign(item, { imageId, label, confidence, status, version, edited: !!edited, box, said, listed: !!listed, file, width, height });
  }

  /** The item of this number; one that was added since the index came is blank until its row is read. */
  item(id) {
    while (this.items.length <= id) this.items.push({ id: this.items.length, version: -1, status: OPEN, listed: false, file: "" });
    return this.items[id];
  }

  /** The labels that an item's image has, this one among them. */
  labelsBeside({ imageId }) {
    return new Set(this.items.filter((other) => other.listed && other.imageId === imageId && other.status !== ABSENT).map((other) => other.label));
  }

  className(item) {
    return this.classes[item.label];
  }

  thumbnail(item) {
    return `/images/${item.imageId}/thumbnail?v=${this.key}`;
  }

  display(item) {
    return `/images/${item.imageId}/display?v=${this.key}`;
  }

  /** The details of an item, asked for once; a failed request is not remembered. */
  detail(id) {
    if (!this.details.has(id)) {
      const promise = get(`/api/items/${id}`);
      promise.catch(() => this.details.delete(id));
      this.details.set(id, promise);
    }
    return this.details.get(id);
  }

  /** Take a newer word about an item, from the server or from our own hand. */
  setDetail(detail) {
    this.details.set(detail.item, Promise.resolve(detail));
    if (detail.row) this.readRow(this.item(detail.item), detail.row);
  }

  counts() {
    const count = { total: 0, open: 0, accepted: 0, rejected: 0, absent: 0 };
    for (const item of this.items) {
      if (!item.listed) continue;
      count.total++;
      count[STATUS_NAMES[item.status]]++;
    }
    count.checked = count.total - count.open;
    return count;
  }

  arrange({ search, label, show, order }) {
    const words = search.toLowerCase().split(/\s+/).filter(Boolean);
    const wanted = this.items.filter((item) => {
      if (!item.listed) return false;
      if (label !== "" && item.label !== Number(label)) return false;
      if (show === "open" && item.status !== OPEN) return false;
      if (show === "checked" && item.status === OPEN) return false;
      if ((show === "rejected" || show === "absent") && item.status !== STATUS[show]) return false;
      const text = item.file.toLowerCase();
      return words.every((word) => text.includes(word));
    });
    const compare = {
      doubt: (a, b) => a.confidence - b.confidence || a.id - b.id,
      sure: (a, b) => b.confidence - a.confidence || a.id - b.id,
      file: (a, b) => (a.file < b.file ? -1 : a.file > b.file ? 1 : a.id - b.id),
    }[order];
    this.order = wanted.sort(compare).map((item) => item.id);
  }

  position(id) {
    return this.order.indexOf(id);
  }

  /** The next item still to check after this place in the list, going round once; undefined when all are done. */
  nextOpen(position) {
    for (let step = 1; step <= this.order.length; step++) {
      const id = this.order[(position + step) % this.order.length];
      if (this.items[id].status === OPEN) return id;
    }
    return undefined;
  }
}
