// The page: which item is shown, what is decided about it, and where to go next.

import { Outbox, Refused, get, post } from "./api.js";
import { overlap, same, sameAll } from "./boxes.js";
import { Candidates } from "./candidates.js";
import { sentence, setUpDialogs, showHelp, toast } from "./dialogs.js";
import { setUpButtons, setUpKeys } from "./keys.js";
import { LabelDialog } from "./labels.js";
import { VirtualList } from "./list.js";
import { Masks } from "./masks.js";
import { Presses } from "./presses.js";
import { Stage } from "./stage.js";
import { ABSENT, ACCEPTED, OPEN, REJECTED, STATUS, STATUS_NAMES, Store } from "./store.js";
import { visible } from "./text.js";
import * as view from "./view.js";

const POLL_EVERY = 1000, LOOK_AHEAD = 4, SAME_OBJECT = 0.5;
const $ = (id) => document.getElementById(id);

if (location.search) history.replaceState(null, "", "/"); // the token has done its work; keep it out of sight

const store = new Store();
const otherTabs = new BroadcastChannel("bagwise-review");
let current; // the item shown
let detail; // its boxes and candidates; undefined until they are here
let seen = []; // the model's boxes that were on screen for this item
let showing = 0; // counts the calls of show(), so that a late one notices that it has been overtaken
let decidedHere = 0;
let asked = 0, heard = 0; // counts questions about the refit, so that an answer overtaken by a later one is not believed

const masks = new Masks($("mask"), $("masks"));
const stage = new Stage({
  stage: $("stage"), canvas: $("canvas"), picture: $("picture"), layer: $("boxes"), message: $("message"),
  onEdit: (boxes) => edit(boxes),
  onSelect: (index) => { $("remove").disabled = index < 0; },
  onDraw: (boxes) => masks.draw(boxes),
});
const candidates = new Candidates($("candidates"), $("picture"), (index) => { act.candidate(index); focusStage(); });
const list = new VirtualList($("list"), store, (id) => { toggleList(false); presses.inTurn(() => show(id)); focusStage(); });
/** Nothing is decided about an image that is not on screen yet. */
const presses = new Presses(() => stage.ready, (count) => {
  toast(`The image is not on screen yet, so ${count === 1 ? "a key press was" : `${count} key presses were`} not taken: press again when it is.`, "bad");
});
const labels = new LabelDialog(store, (label, mode) => presses.onImage(() => relabel(label, mode)));
const outbox = new Outbox({
  onDone: (change, result) => {
    if (!store.items.length) return; // left over from before a reload; the index will tell
    if (change.item === undefined) return afterUndo(result);
    if (!outbox.has(change.item)) adopt(result);
    if (result.also) adoptLabel(change.item, result);
    otherTabs.postMessage("changed");
  },
  onRefused: (change, error) => {
    if (change.item !== undefined) outbox.drop(change.item);
    if (error.body.now && store.items.length) adopt(error.body.now, true);
    if (change.item === current && change.body.to) show(current);
    const name = store.items[change.item] ? `${store.items[change.item].file}: ` : "";
    toast(name + error.message, "bad");
  },
  onConnection: view.showConnection,
});

// ---- showing -------------------------------------------------------------------------------------------------

const describe = (item) => view.describe(store, item, detail?.item === item.id ? stage.boxes.length : 1);
const showProgress = () => view.showProgress(store, decidedHere);

async function show(id) {
  const item = store.items[id], turn = ++showing;
  current = id;
  detail = undefined;
  $("stage").setAttribute("aria-busy", true);
  stage.setDrawing(false);
  $("draw").setAttribute("aria-pressed", false);
  list.select(id);
  describe(item);
  candidates.clear();
  masks.clear();
  stage.setBoxes([]);
  const loaded = stage.show(store.display(item), item.width, item.height, visible(`${store.className(item)}: ${item.file}`));
  let got;
  try {
    got = await store.detail(id);
  } catch (error) {
    if (error instanceof Refused) toast(sentence(error.message), "bad");
    else setTimeout(() => turn === showing && show(id), 1000); // the server is away: try again
    return;
  }
  if (turn !== showing) return;
  showDetail(got);
  await loaded;
  if (turn !== showing) return;
  stage.ready = true;
  $("stage").setAttribute("aria-busy", false);
  showCandidates();
  presses.release();
  if (turn !== showing) return; // a press that waited has moved on
  sessionStorage.setItem("bagwise-current", `${item.file}\n${store.className(item)}`);
  lookAhead(id);
}

function showDetail(got) {
  detail = got;
  seen = [...got.rejected];
  for (const box of got.boxes) noteSeen(box);
  masks.set(got.candidates, got.masks, ...stage.size);
  stage.setBoxes(got.boxes);
  candidates.mark(got.boxes);
  describe(store.items[got.item]);
}

function showCandidates() {
  candidates.show(detail.candidates, store.items[current].width, masks);
  candidates.mark(stage.boxes);
}

function noteSeen(box) {
  const fromModel = detail.candidates.some((candidate) => same(candidate, box));
  if (fromModel && !seen.some((other) => same(other, box))) seen.push(box);
}

function lookAhead(id) {
  let position = store.position(id);
  const upcoming = new Set();
  for (let step = 0; step < LOOK_AHEAD; step++) {
    const next = store.nextOpen(position);
    if (next === undefined) break;
    upcoming.add(next);
    position = store.position(next);
  }
  upcoming.add(store.order[store.position(id) + 1]);
  for (const next of upcoming) {
    if (next === undefined || next === id) continue;
    store.detail(next).catch(() => {}); // asked again when it is shown
    new Image().src = store.display(store.items[next]);
  }
}

// ---- deciding ------------------------------------------------------------------------------------------------

/** Change an item at once on screen, and send the change on its way. */
function change(action, boxes, status) {
  const item = store.items[current];
  // Boxes that the model showed and that are not among the kept ones have been passed over.
  const rejected = action === "reopen" ? [] : seen.filter((box) => boxes.every((kept) => overlap(kept, box) < SAME_OBJECT));
  const was = STATUS[detail.status];
  if (was !== OPEN && was === status && sameAll(boxes, detail.boxes)) return; // already decided so
  outbox.add({
    item: current,
    path: `/api/items/${current}/decision`,
    // The version is that of what is on screen: what the person has not seen yet must not be overwritten.
    body: { action, boxes: action === "reopen" ? null : boxes, rejected, version: detail.version },
  });
  if (was === OPEN && status !== OPEN) decidedHere++;
  Object.assign(item, { version: detail.version + 1, status, edited: action !== "reopen", box: boxes[0] || null });
  detail = { ...detail, boxes, rejected, status: STATUS_NAMES[status], version: item.version };
  store.setDetail({ ...detail, row: undefined });
  list.refresh();
  showProgress();
}

function edit(boxes) {
  const accepted = detail.status === "accepted" && boxes.length;
  change("edit", boxes.map((box) => [...box]), accepted ? ACCEPTED : OPEN);
  candidates.mark(boxes);
  describe(store.items[current]);
}

function decide(action) {
  stage.cancel();
  const boxes = action === "accept" ? stage.boxes.map((box) => [...box]) : [];
  const position = store.position(current);
  change(action, boxes, boxes.length ? ACCEPTED : action === "absent" ? ABSENT : REJECTED);
  const next = store.nextOpen(position);
  if (next !== undefined) return show(next);
  describe(store.items[current]);
  stage.setBoxes(boxes);
  const left = store.counts().total - store.counts().checked;
  toast(left ? `This list is done; ${left} more are hidden by the filters.` : "All done. Export your boxes, or refit and look again.", "good");
}

function takeCandidate(index) {
  if (index >= detail.candidates.length) return;
  const box = detail.candidates[index], boxes = stage.boxes.map((other) => [...other]);
  const at = Math.max(0, stage.target);
  if (boxes.some((other) => same(other, box))) return;
  boxes[boxes.length ? at : 0] = [...box];
  noteSeen(box);
  stage.setBoxes(boxes, at);
  edit(boxes);
}

function nextCandidate(step) {
  if (!detail.candidates.length) return;
  const count = detail.candidates.length;
  const shown = stage.boxes[Math.max(0, stage.target)];
  let index = shown ? detail.candidates.findIndex((box) => same(box, shown)) : -1;
  if (index < 0 && step < 0) index = 0;
  for (let tries = 0; tries < count; tries++) {
    index = (index + step + count) % count;
    if (!stage.boxes.some((box) => same(box, detail.candidates[index]))) return takeCandidate(index);
  }
}

/** Give the image another label, instead of this one or as well; the page goes there when the server knows it. */
function relabel(label, mode) {
  const boxes = stage.boxes.map((box) => [...box]), instead = mode === "instead";
  decidedHere++;
  // The version, as in change(): that of what is on screen.
  const body = { action: instead ? "absent" : "add", to: label, boxes: instead && boxes.length ? boxes : null, version: detail.version };
  stage.ready = false;
  $("stage").setAttribute("aria-busy", true);
  outbox.add({ item: current, path: `/api/items/${current}/decision`, body });
}

function adoptLabel(from, { also, classes }) {
  store.classes = classes;
  adopt(also);
  view.fillClasses(store);
  arrange(false);
  if (from === current) show(also.item);
}

function reopen() {
  if (detail.status === "open" && !store.items[current].edited) return;
  change("reopen", detail.objects.map((box) => [...box]), OPEN);
  showDetail(detail);
}

function afterUndo(result) {
  if (result.item === null) return toast("There is nothing to undo in this window.");
  adopt(result);
  otherTabs.postMessage("changed");
  if (!store.items[result.item].listed) return presses.inTurn(() => showLabels(store.classes));
  if (result.item !== current) presses.inTurn(() => show(result.item));
}

/** Take the server's word on an item; on the shown one it replaces what is on screen only when it is news. */
function adopt(fresh, force = false) {
  if (force) stage.cancel();
  const stale = detail && (fresh.version !== detail.version || force || !sameAll(fresh.boxes, stage.boxes));
  store.setDetail(fresh);
  if (fresh.item === current && detail && stale && !stage.drag) showDetail(fresh);
  else if (fresh.item === current && detail) detail = fresh;
  list.refresh();
  showProgress();
}

// ---- other windows, restarts and refits ----------------------------------------------------------------------

async function poll() {
  clearTimeout(poll.timer);
  const question = ++asked;
  try {
    const news = await get(`/api/changes?since=${store.seq}`);
    if (!outbox.queue.length) view.showConnection(true, 0);
    showRefit(news.refit, question);
    await hear(news); // a reload takes a while
  } catch (error) {
    view.showConnection(false, outbox.queue.length, error instanceof Refused ? error.message : "");
  }
  clearTimeout(poll.timer); // another one may have been called meanwhile: keep a single round going
  poll.timer = setTimeout(poll, document.hidden ? 5 * POLL_EVERY : POLL_EVERY);
}

async function hear(news) {
  if (news.generation !== store.generation) return reload();
  // Our own changes are known, and one that is still on its way will meet its conflict.
  const changed = news.items.filter(([id, row]) => !outbox.has(id) && row[4] > store.item(id).version);
  const listed = changed.map(([id]) => store.items[id].listed);
  const shown = changed.some(([id]) => id === current);
  if (shown && !stage.drag) await renew();
  if (shown && stage.drag) return; // asked again in a second; what is drawn until then will meet its conflict
  store.seq = news.seq;
  if (!changed.length) return;
  for (const [id, row] of changed) {
    if (row[4] <= store.items[id].version) continue; // renewed
    store.readRow(store.items[id], row);
    store.details.delete(id);
  }
  if (changed.some(([id], i) => store.items[id].listed !== listed[i])) showLabels(news.classes);
  else list.refresh();
  showProgress();
}

/** Labels were added or taken back: in another window, or by undoing. */
function showLabels(classes) {
  store.classes = classes;
  view.fillClasses(store);
  arrange(false);
  const { listed, imageId } = store.items[current];
  if (!listed) show(store.items.find((item) => item.listed && item.imageId === imageId)?.id ?? store.order[0]);
}

async function reload() {
  await store.load();
  decidedHere = 0;
  view.fillClasses(store);
  arrange(false);
  if (current !== undefined) list.select(current); // the new order may have put it far away
  if (current !== undefined && !outbox.has(current)) await renew();
}

/** Ask again about the shown item. What is on screen stays, and can be decided about, until the answer is here. */
async function renew() {
  const id = current, before = detail;
  store.details.delete(id);
  if (!before) return show(id);
  const fresh = await store.detail(id);
  if (detail !== before || stage.drag) return; // decided or moved on meanwhile
  adopt(fresh);
  showCandidates();
}

async function refit() {
  try {
    showRefit(await post("/api/refit", {}), ++asked); // later than whatever was asked before this answer came
    poll();
  } catch (error) {
    toast(sentence(error.message), "bad");
  }
}

function showRefit(state, question) {
  if (question < heard) return;
  heard = question;
  const before = showRefit.last;
  showRefit.last = state;
  $("refit").disabled = state.state === "running" || !store.canRefit;
  $("refit").classList.toggle("busy", state.state === "running");
  if (!before || before.state !== "running" || state.state === "running") return;
  if (state.state === "failed") toast(`The refit failed: ${state.error}`, "bad");
  else toast(`Refitted in ${state.seconds} s: ${state.changed} of ${state.open} unchecked answers changed.`, "good");
}

// ---- the list and its filters --------------------------------------------------------------------------------

function arrange(toTop = true) {
  store.arrange({ search: $("search").value, label: $("class-filter").value, show: $("show-filter").value, order: $("order").value });
  if (toTop) $("list").scrollTop = 0;
  list.refresh();
  showProgress();
  if (!toTop || !store.order.length) return;
  if (store.position(current) < 0) show(store.nextOpen(-1) ?? store.order[0]);
  else list.select(current);
}

function move(step) {
  if (!store.order.length) return;
  const position = store.position(current);
  const next = Math.min(Math.max(position + step, 0), store.order.length - 1);
  if (next !== position) show(store.order[next]);
}

function focusStage() {
  $("stage").focus({ preventScroll: true });
}

const act = {
  accept: () => presses.onImage(() => decide("accept")),
  reject: () => presses.onImage(() => decide("reject")),
  absent: () => presses.onImage(() => decide("absent")),
  relabel: (mode) => presses.onImage(() => labels.open(store.items[current], mode)),
  candidate: (index) => presses.onImage(() => takeCandidate(index)),
  nextCandidate: (step) => presses.onImage(() => nextCandidate(step)),
  undo: () => presses.inTurn(() => stage.cancel() || outbox.add({ path: "/api/undo", body: {} })),
  reopen: () => presses.onImage(reopen),
  move: (step) => presses.inTurn(() => move(step)),
  jump: (position) => presses.inTurn(() => store.order.length && show(store.order.at(position))),
  nextOpen: () => presses.inTurn(() => {
    const next = store.nextOpen(store.position(current));
    if (next !== undefined) show(next);
  }),
  toggleDraw: () => {
    stage.setDrawing(!stage.drawing);
    $("draw").setAttribute("aria-pressed", stage.drawing);
  },
  selectNext: () => presses.onImage(() => stage.boxes.length && stage.select((stage.selected + 1) % stage.boxes.length)),
  remove: () => presses.onImage(() => stage.removeSelected()),
  nudge: (dx, dy, resize) => presses.onImage(() => stage.nudge(dx, dy, resize)),
  escape: () => {
    if (stage.cancel()) return;
    if (stage.drawing) act.toggleDraw();
    else stage.select(-1);
  },
  peek: (on) => $("stage").classList.toggle("peek", on),
  toggleMasks: () => masks.toggle(),
  zoom: (factor) => (factor ? stage.zoomBy(factor) : stage.zoomReset()),
  focusSearch: () => $("search").select(),
  focusClass: () => $("class-filter").focus(),
  focusStage,
  refit,
  arrange: () => presses.inTurn(arrange),
  toggleList: () => toggleList(),
  help: showHelp,
};

/** On a narrow screen the list lies over the image: open it, or close it. */
function toggleList(open = !document.body.classList.contains("list-open")) {
  document.body.classList.toggle("list-open", open);
  $("toggle-list").setAttribute("aria-expanded", open);
  if (open) list.select(current);
}

async function start() {
  setUpButtons(act);
  setUpDialogs();
  setUpKeys(act);
  try {
    // What a reload interrupted goes first, so that the index holds it; but the page does not wait for ever.
    await Promise.race([outbox.flush(), new Promise((resolve) => setTimeout(resolve, 3000))]);
    await store.load();
  } catch (error) {
    $("progress-text").textContent = "";
    $("message").textContent = error instanceof Refused ? sentence(error.message) : "The server does not answer. Is `bagwise review` still running?";
    $("message").hidden = false;
    return;
  }
  document.title = `${store.run} · bagwise review`;
  $("run-name").textContent = store.run;
  view.fillClasses(store);
  const left = sessionStorage.getItem("bagwise-current");
  const before = left === null ? undefined : store.items.find((item) => left === `${item.file}\n${store.className(item)}`);
  if (before) current = before.id;
  arrange();
  if (before) show(before.id);
  showRefit(store.refit, ++asked);
  focusStage();
  otherTabs.onmessage = poll;
  document.addEventListener("visibilitychange", () => document.hidden || poll());
  poll();
}

start();
