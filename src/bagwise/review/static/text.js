// Names from files, made harmless to read: a mark that turns the direction of writing, or moves the cursor, is shown as
// what it is. Otherwise "exe.gpj" could look like "jpg.exe", and turn round everything that follows on its line.

const HIDDEN = /[\u0000-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g;

export const visible = (text) =>
  text.replace(HIDDEN, (mark) => `⟨U+${mark.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}⟩`);
