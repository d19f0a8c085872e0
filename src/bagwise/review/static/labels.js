// The dialog in which an image gets another label: instead of the one that is wrong, or as well.

import { closeOnBackdrop, openDialog } from "./dialogs.js";
import { visible } from "./text.js";

const $ = (id) => document.getElementById(id);
const LONGEST = 100; // characters of a class's name

export class LabelDialog {
  /** onChoose(label, mode) is called with the name of a class, known or new, and "instead" or "also". */
  constructor(store, onChoose) {
    Object.assign(this, { store, onChoose });
    this.dialog = $("label-dialog");
    this.search = $("label-search");
    this.search.maxLength = LONGEST;
    this.search.addEventListener("input", () => this.fill());
    this.search.addEventListener("keydown", (event) => {
      if (event.key !== "Enter") return;
      event.preventDefault();
      this.choose($("label-classes").querySelector("button:not(:disabled)"));
    });
    for (const radio of this.modes) radio.addEventListener("change", () => this.fill());
    $("label-classes").addEventListener("click", (event) => this.choose(event.target.closest("button")));
    $("label-close").addEventListener("click", () => this.dialog.close());
    closeOnBackdrop(this.dialog);
  }

  get modes() {
    return [...this.dialog.querySelectorAll("input[name=label-mode]")];
  }

  open(item, mode) {
    this.item = item;
    for (const radio of this.modes) radio.checked = radio.value === mode;
    for (const name of this.dialog.querySelectorAll(".label-now")) name.textContent = visible(this.store.className(item));
    this.search.value = "";
    this.fill();
    openDialog(this.dialog);
    // A finger wants the list, not a keyboard over half of it.
    if (!matchMedia("(pointer: coarse)").matches) this.search.focus();
  }

  /** One button for each class that the typed text fits, and one for a class that is new. */
  fill() {
    const typed = this.search.value.trim().replace(/\s+/g, " "), words = typed.toLowerCase();
    const beside = this.store.labelsBeside(this.item);
    const names = this.store.classes.map((name, index) => ({ name, index })).filter(({ name }) => name.toLowerCase().includes(words));
    // What begins with the typed text comes first: Enter takes the first.
    names.sort((a, b) => b.name.toLowerCase().startsWith(words) - a.name.toLowerCase().startsWith(words) || a.index - b.index);
    const buttons = names.filter(({ index }) => index !== this.item.label).map(({ name, index }) => {
      const made = button(name, name);
      made.disabled = beside.has(index);
      if (made.disabled) made.title = "The image has this label already";
      return made;
    });
    if (typed && !this.store.classes.some((name) => name.toLowerCase() === words)) buttons.push(button(`New class “${typed}”`, typed));
    $("label-classes").replaceChildren(...buttons);
  }

  choose(chosen) {
    if (!chosen || chosen.disabled) return;
    this.dialog.close();
    this.onChoose(chosen.dataset.label, this.modes.find((radio) => radio.checked).value);
  }
}

function button(text, label) {
  const made = document.createElement("button");
  made.type = "button";
  made.textContent = visible(text);
  made.dataset.label = label;
  return made;
}
