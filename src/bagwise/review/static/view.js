// Words on the page: the question, the progress, the connection, the classes. Text only, never markup.

import { ABSENT, ACCEPTED, OPEN, REJECTED, STATUS_NAMES } from "./store.js";
import { visible } from "./text.js";

const $ = (id) => document.getElementById(id);
const QUESTIONS = ["Where is the ", "Does the box hold the ", "Do the boxes hold every "]; // by the number of boxes

/** Ask the question about an item, and say how it stands. */
export function describe(store, item, boxCount) {
  const position = store.position(item.id), name = visible(store.className(item));
  const sure = item.confidence > 0 ? `confidence ${item.said}` : item.box ? "by hand" : "nothing found yet"; // no answer of the model
  const strong = document.createElement("strong");
  strong.textContent = name;
  $("question").replaceChildren(QUESTIONS[Math.min(boxCount, 2)], strong, "?");
  $("file").textContent = `${visible(item.file)} · ${sure}` + (position >= 0 ? ` · ${position + 1} of ${store.order.length}` : "");
  const verdict = { [ACCEPTED]: "✓ Accepted", [REJECTED]: "✕ Elsewhere: no box is kept", [ABSENT]: `⊘ No ${name} here` }[item.status] || "";
  $("absent-name").textContent = name;
  $("verdict").textContent = verdict;
  $("verdict").hidden = !verdict;
  $("stage").dataset.status = STATUS_NAMES[item.status];
  $("stage").dataset.item = item.id;
  $("announce").textContent = `${name}, ${sure}, ${verdict || "to check"}, image ${position + 1} of ${store.order.length}`;
}

export function showProgress(store, decidedHere) {
  const count = store.counts();
  $("progress").max = Math.max(1, count.total);
  $("progress").value = count.checked;
  const wrong = count.absent ? ` · ${count.absent} wrong ${count.absent === 1 ? "label" : "labels"}` : "";
  $("progress-text").textContent = `${count.checked} of ${count.total} checked · ${count.accepted} accepted · ${count.rejected} rejected${wrong}`;
  $("progress-short").textContent = `${count.checked}/${count.total}`; // where there is no room for more
  const open = store.order.filter((id) => store.items[id].status === OPEN).length;
  $("list-summary").textContent = store.order.length ? `${store.order.length} listed, ${open} to check` : "Nothing fits these filters.";
  const badge = $("refit-count");
  badge.hidden = decidedHere === 0;
  badge.textContent = decidedHere;
}

/** Say that changes cannot be saved now: because the server is away, or for the reason it gave. */
export function showConnection(connected, waiting, reason = "") {
  $("offline").hidden = connected;
  const why = reason ? `Nothing can be saved now: ${reason}.` : "The server is away.";
  const kept = waiting
    ? `${waiting} ${waiting === 1 ? "change waits" : "changes wait"} here and will be sent when that is over.`
    : "What you decide now waits here and will be sent when that is over.";
  $("offline").textContent = `${why} ${kept}`;
}

export function fillClasses(store) {
  const option = (value, text) => Object.assign(document.createElement("option"), { value, textContent: text });
  const count = new Map(), listed = store.items.filter((item) => item.listed), chosen = $("class-filter").value;
  for (const item of listed) count.set(item.label, (count.get(item.label) || 0) + 1);
  $("class-filter").replaceChildren(
    option("", `All classes (${listed.length})`),
    ...store.classes.map((name, index) => option(index, `${visible(name)} (${count.get(index) || 0})`)),
  );
  $("class-filter").value = chosen;
}
