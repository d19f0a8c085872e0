// Arithmetic on boxes: [x1, y1, x2, y2] in pixels of the image.

export const SMALLEST = 2;

export const area = ([x1, y1, x2, y2]) => Math.max(0, x2 - x1) * Math.max(0, y2 - y1);

export function overlap(a, b) {
  const shared = area([Math.max(a[0], b[0]), Math.max(a[1], b[1]), Math.min(a[2], b[2]), Math.min(a[3], b[3])]);
  return shared ? shared / (area(a) + area(b) - shared) : 0;
}

export const same = (a, b) => a.every((value, i) => Math.abs(value - b[i]) < 0.01);

export const sameAll = (a, b) => a.length === b.length && a.every((box, i) => same(box, b[i]));

const clamp = (value, low, high) => Math.min(Math.max(value, low), high);

/** Move a whole box, keeping it inside the image. */
export function moved([x1, y1, x2, y2], dx, dy, width, height) {
  dx = clamp(dx, -x1, width - x2);
  dy = clamp(dy, -y1, height - y2);
  return [x1 + dx, y1 + dy, x2 + dx, y2 + dy];
}

/** Pull one side or corner ("n", "se", …); pulled past the opposite side, the box turns over. */
export function resized(box, side, dx, dy, width, height) {
  let [x1, y1, x2, y2] = box;
  if (side.includes("w")) x1 = clamp(x1 + dx, 0, width);
  if (side.includes("e")) x2 = clamp(x2 + dx, 0, width);
  if (side.includes("n")) y1 = clamp(y1 + dy, 0, height);
  if (side.includes("s")) y2 = clamp(y2 + dy, 0, height);
  return upright([x1, y1, x2, y2], width, height);
}

export function upright([xa, ya, xb, yb], width, height) {
  const [x1, x2] = stretch(clamp(Math.min(xa, xb), 0, width), clamp(Math.max(xa, xb), 0, width), width);
  const [y1, y2] = stretch(clamp(Math.min(ya, yb), 0, height), clamp(Math.max(ya, yb), 0, height), height);
  return [x1, y1, x2, y2];
}

function stretch(low, high, limit) {
  if (high - low >= SMALLEST) return [low, high];
  low = clamp(low, 0, Math.max(0, limit - SMALLEST));
  return [low, Math.min(limit, low + SMALLEST)];
}

export const rounded = (box) => box.map((value) => Math.round(value * 100) / 100);
