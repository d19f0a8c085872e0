// Short messages, the help, and the export dialog.

import { post } from "./api.js";

const $ = (id) => document.getElementById(id);

export function toast(text, kind = "info") {
  const element = document.createElement("p");
  element.className = `toast ${kind}`;
  element.textContent = text;
  $("toasts").append(element);
  while ($("toasts").children.length > 3) $("toasts").firstChild.remove();
  setTimeout(() => element.remove(), kind === "info" ? 3500 : 8000);
}

/** What the server says, as it stands on a page: with a capital letter and a full stop. */
export const sentence = (text) => text.charAt(0).toUpperCase() + text.slice(1) + (/[.!?]$/.test(text) ? "" : ".");

/** A line of what the user should know; those that begin with blanks are steps under the one before. */
function noteLine(text) {
  const line = document.createElement("small");
  line.className = text.startsWith(" ") ? "step" : "";
  line.textContent = text.trim();
  return line;
}

/** Open a dialog, at its beginning. */
export function openDialog(dialog) {
  // A closing dialog gives the focus back to what had it before. That must not be the button that opened it, or Enter
  // would open it again instead of accepting.
  $("stage").focus({ preventScroll: true });
  dialog.showModal();
  dialog.scrollTop = 0;
}

/** A click on the backdrop closes, as people expect. */
export function closeOnBackdrop(dialog) {
  dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
}

export function setUpDialogs() {
  const help = $("help-dialog"), dialog = $("export-dialog"), go = $("export-go"), result = $("export-result");
  $("help").addEventListener("click", showHelp);
  $("export").addEventListener("click", () => {
    result.textContent = "";
    openDialog(dialog);
  });
  $("export-close").addEventListener("click", () => dialog.close());
  go.addEventListener("click", async () => {
    const format = dialog.querySelector("input[name=format]:checked").value;
    go.disabled = true;
    result.className = "result";
    result.textContent = "Writing…";
    try {
      const done = await post("/api/export", { format, checked_only: $("export-checked").checked });
      const what = `${done.boxes} ${done.boxes === 1 ? "box" : "boxes"} in ${done.images} ${done.images === 1 ? "image" : "images"} written to ${done.path}`;
      result.replaceChildren(what, ...done.notes.map(noteLine));
    } catch (error) {
      result.className = "result bad";
      result.textContent = sentence(error.message);
    }
    go.disabled = false;
  });
  for (const each of [help, dialog]) closeOnBackdrop(each);
}

export const dialogOpen = () => document.querySelector("dialog[open]") !== null;
export const showHelp = () => openDialog($("help-dialog"));
