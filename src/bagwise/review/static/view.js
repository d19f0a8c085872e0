// Words on the page: the question, the progress, the connection, the classes. Text only, never markup.

import { ACCEPTED, OPEN, REJECTED } from "./store.js";

const $ = (id) => document.getElementById(id);

/** Ask the question about an item, and say how it stands. */
export function describe(store, item, boxCount) {
  const position = store.position(item.id), name = store.className(item), sure = Math.round(item.confidence * 100);
  const strong = document.createElement("strong");
  strong.textContent = name;
  $("question").replaceChildren("Does the box hold the ", strong, "?");
  if (boxCount > 1) $("question").firstChild.textContent = "Do the boxes hold every ";
  $("file").textContent = `${item.file} · ${sure}% sure` + (position >= 0 ? ` · ${position + 1} of ${store.order.length}` : "");
  const verdict = item.status === ACCEPTED ? "✓ Accepted" : item.status === REJECTED ? "✕ Rejected: no box is kept" : "";
  $("verdict").textContent = verdict;
  $("verdict").hidden = !verdict;
  $("stage").dataset.status = ["open", "accepted", "rejected"][item.status];
  $("stage").dataset.item = item.id;
  $("announce").textContent = `${name}, ${sure}% sure, ${verdict || "to check"}, image ${position + 1} of ${store.order.length}`;
}

export function showProgress(store, decidedHere) {
  const count = store.counts();
  $("progress").max = Math.max(1, count.total);
  $("progress").value = count.checked;
  $("progress-text").textContent = `${count.checked} of ${count.total} checked · ${count.accepted} accepted · ${count.rejected} rejected`;
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
  const count = new Map();
  for (const item of store.items) count.set(item.label, (count.get(item.label) || 0) + 1);
  $("class-filter").replaceChildren(
    option("", `All classes (${store.items.length})`),
    ...store.classes.map((name, index) => option(index, `${name} (${count.get(index) || 0})`)),
  );
}
