// One place for every key and button: what is pressed -> what is done.

import { dialogOpen } from "./dialogs.js";

const ARROWS = { ArrowRight: [1, 0], ArrowDown: [0, 1], ArrowLeft: [-1, 0], ArrowUp: [0, -1] };
const ONCE_PER_PRESS = new Set(["accept", "reject", "absent", "undo", "reopen"]); // a key held down decides once

export function setUpKeys(act) {
  document.addEventListener("keydown", (event) => {
    if (dialogOpen()) return;
    const target = event.target;
    if (target.matches("input, select, textarea")) {
      if (event.key === "Escape" || (event.key === "Enter" && target.matches("input"))) {
        event.preventDefault();
        act.focusStage();
      }
      return;
    }
    // A focused button or link keeps its own Enter and Space.
    if (target.matches("button, a") && (event.key === "Enter" || event.key === " ")) return;
    const name = actionOf(event);
    if (!name) return;
    event.preventDefault();
    if (event.repeat && ONCE_PER_PRESS.has(name[0])) return;
    act[name[0]](...name.slice(1));
  });
  document.addEventListener("keyup", (event) => {
    if (event.key.toLowerCase() === "h") act.peek(false);
  });
  addEventListener("blur", () => act.peek(false));
}

export function setUpButtons(act) {
  const $ = (id) => document.getElementById(id);
  const actions = {
    accept: act.accept, reject: act.reject, absent: act.absent, candidate: () => act.nextCandidate(1), draw: act.toggleDraw,
    remove: act.remove, previous: () => act.move(-1), next: () => act.move(1), undo: act.undo, refit: act.refit, masks: act.toggleMasks,
  };
  for (const [id, action] of Object.entries(actions)) $(id).addEventListener("click", () => { action(); act.focusStage(); });
  for (const id of ["class-filter", "show-filter", "order"]) $(id).addEventListener("change", act.arrange);
  $("search").addEventListener("input", act.arrange);
  $("label").addEventListener("click", () => act.relabel("instead")); // the dialog takes the focus
  $("toggle-list").addEventListener("click", act.toggleList);
}

function actionOf(event) {
  const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
  if (event.ctrlKey || event.metaKey) return key === "z" && !event.shiftKey ? ["undo"] : undefined;
  if (ARROWS[event.key]) {
    if (event.shiftKey) return ["nudge", ...ARROWS[event.key], event.altKey];
    if (event.altKey) return undefined;
    return ["move", event.key === "ArrowRight" || event.key === "ArrowDown" ? 1 : -1];
  }
  if (event.altKey) return undefined;
  if (/^[1-9]$/.test(key)) return ["candidate", Number(key) - 1];
  return {
    Enter: ["accept"], " ": ["accept"], a: ["accept"],
    x: ["reject"], w: ["absent"], r: ["relabel", "instead"], l: ["relabel", "also"],
    c: ["nextCandidate", event.shiftKey ? -1 : 1],
    z: ["undo"], u: ["reopen"],
    n: ["nextOpen"], Home: ["jump", 0], End: ["jump", -1], PageDown: ["move", 10], PageUp: ["move", -10],
    d: ["toggleDraw"], b: ["selectNext"], Delete: ["remove"], Backspace: ["remove"], Escape: ["escape"],
    h: ["peek", true], m: ["toggleMasks"],
    "+": ["zoom", 1.4], "=": ["zoom", 1.4], "-": ["zoom", 1 / 1.4], 0: ["zoom", 0],
    "/": ["focusSearch"], f: ["focusClass"], "?": ["help"],
  }[key];
}
