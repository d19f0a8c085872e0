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

export function setUpDialogs() {
  const help = $("help-dialog"), dialog = $("export-dialog"), go = $("export-go"), result = $("export-result");
  $("help").addEventListener("click", () => help.showModal());
  $("export").addEventListener("click", () => {
    result.textContent = "";
    dialog.showModal();
  });
  $("export-close").addEventListener("click", () => dialog.close());
  go.addEventListener("click", async () => {
    const format = dialog.querySelector("input[name=format]:checked").value;
    go.disabled = true;
    result.className = "result";
    result.textContent = "Writing…";
    try {
      const done = await post("/api/export", { format, checked_only: $("export-checked").checked });
      result.textContent = `${done.boxes} ${done.boxes === 1 ? "box" : "boxes"} in ${done.images} ${done.images === 1 ? "image" : "images"} written to ${done.path}. ${done.notes.join(". ")}`;
    } catch (error) {
      result.className = "result bad";
      result.textContent = error.message;
    }
    go.disabled = false;
  });
  for (const each of [help, dialog]) {
    // A click on the backdrop closes, as people expect.
    each.addEventListener("click", (event) => event.target === each && each.close());
  }
}

export const dialogOpen = () => document.querySelector("dialog[open]") !== null;
export const showHelp = () => $("help-dialog").showModal();
