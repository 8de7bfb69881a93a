/** Work that must not overlap: one after the other, in the order it was asked for. */

/** A line of work. */
export class Turns {
  #last: Promise<unknown> = Promise.resolve();

  /** Does it when all that came before is over, whichever way that ended. */
  take<T>(work: () => Promise<T>): Promise<T> {
    const turn = this.#last.then(work);
    this.#last = turn.catch(() => undefined);
    return turn;
  }

  /** Waits for all that was asked for so far. */
  async over(): Promise<void> {
    await this.#last;
  }
}
