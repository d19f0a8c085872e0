// Presses that come while the next image is on its way: they wait for it in their order; none is lost without a word.

const PATIENCE = 3000; // milliseconds; later, the person has long stopped meaning it

export class Presses {
  /** isReady() says whether the image is on screen; onGivenUp(count) is called when it did not come in time. */
  constructor(isReady, onGivenUp) {
    this.isReady = isReady;
    this.onGivenUp = onGivenUp;
    this.waiting = [];
  }

  /** Do this to the image, now or as soon as it is on screen. */
  onImage(action) {
    this.take({ action, needsImage: true });
  }

  /** Do this now, but not before what waits. */
  inTurn(action) {
    this.take({ action, needsImage: false });
  }

  take(press) {
    this.waiting.push(press);
    this.release();
  }

  /** Do what can be done; to be called when an image has come on screen. */
  release() {
    clearTimeout(this.timer);
    while (this.waiting.length && (!this.waiting[0].needsImage || this.isReady())) this.waiting.shift().action();
    if (this.waiting.length) this.timer = setTimeout(() => this.onGivenUp(this.waiting.splice(0).length), PATIENCE);
  }
}
