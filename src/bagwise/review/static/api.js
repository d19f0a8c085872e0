// Talking to the server: plain requests, and an outbox that loses nothing while the server is away.

const OUTBOX_KEY = "bagwise-outbox";
const CLIENT_KEY = "bagwise-client";

export class Refused extends Error {
  constructor(status, body) {
    super(body.error || `the server answered ${status}`);
    this.status = status;
    this.body = body;
  }
}

export async function get(path) {
  return answer(await fetch(path, { credentials: "same-origin" }));
}

export async function post(path, body) {
  return answer(await fetch(path, {
    method: "POST",
    credentials: "same-origin",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
  }));
}

async function answer(response) {
  const type = response.headers.get("Content-Type") || "";
  const body = type.includes("json") ? await response.json() : { error: await response.text() };
  if (!response.ok) throw new Refused(response.status, body);
  return body;
}

// One name per tab; it survives a reload, so that undo does too.
export const client = sessionStorage.getItem(CLIENT_KEY) || newKey();
sessionStorage.setItem(CLIENT_KEY, client);

export function newKey() {
  // crypto.randomUUID exists only on loopback and https; this one works on any address.
  return Array.from(crypto.getRandomValues(new Uint8Array(12)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/**
 * Changes on their way to the server, sent one after another in the order they were made.
 * Each has a key, so that one whose answer was lost can be sent again without counting twice.
 * The queue is kept for the tab's lifetime, so a reload in the middle loses nothing.
 */
export class Outbox {
  constructor({ onDone, onRefused, onConnection }) {
    this.queue = JSON.parse(sessionStorage.getItem(OUTBOX_KEY) || "[]");
    this.onDone = onDone;
    this.onRefused = onRefused;
    this.onConnection = onConnection;
    this.sending = false;
    addEventListener("beforeunload", (event) => {
      if (this.queue.length) event.preventDefault();
    });
  }

  add(change) {
    this.queue.push({ ...change, body: { ...change.body, client, key: newKey() } });
    this.keep();
    this.flush();
  }

  has(item) {
    return this.queue.some((change) => change.item === item);
  }

  /** Drop what was queued for an item that someone else has changed. */
  drop(item) {
    this.queue = this.queue.filter((change) => change.item !== item);
    this.keep();
  }

  keep() {
    sessionStorage.setItem(OUTBOX_KEY, JSON.stringify(this.queue));
  }

  async flush() {
    if (this.sending) return;
    this.sending = true;
    let wait = 250;
    while (this.queue.length) {
      const change = this.queue[0];
      try {
        const result = await post(change.path, change.body);
        this.queue.shift();
        this.keep();
        this.onConnection(true, this.queue.length);
        this.onDone(change, result);
        wait = 250;
      } catch (error) {
        if (error instanceof Refused && error.status < 500) {
          this.queue.shift();
          this.keep();
          this.onRefused(change, error);
        } else {
          this.onConnection(false, this.queue.length, error instanceof Refused ? error.message : "");
          await new Promise((resolve) => setTimeout(resolve, wait));
          wait = Math.min(wait * 2, 3000);
        }
      }
    }
    this.sending = false;
  }
}
