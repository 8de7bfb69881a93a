/**
 * When it pays to wait for a folder that is about to come back, instead of making one more.
 *
 * An Issue whose work is taken back needs its folder only until it is integrated. A few such folders are nothing: the next
 * agent gets a new one at once. But where many are out, work waits to be judged, and an agent that starts sooner is not
 * done sooner; a folder more then only costs a checkout and its removal. So there one waits for the next that comes back,
 * though not much longer than making one takes; and after a wait in vain not again until one has come back.
 *
 * Files are written no faster by more writers than there are processors, so only a few folders are made at once: the first
 * agents start while the last folders are still to be made, and what comes back meanwhile saves making one.
 */
import type { IssueId } from '../issue.js';
import type { Clock } from '../platform/clock.js';

/** Leave to make a folder. */
export interface Turn {
  /** Lets the next one begin; may be called again. */
  readonly over: () => void;
}

/** Knows which folders are expected back. */
export class Returns {
  readonly #clock: Pick<Clock, 'monotonic' | 'sleep'>;
  readonly #makers: number;
  /** How many are being made. */
  #making = 0;
  /** Who waits to make one; told whether it is their turn, else one came back. */
  readonly #queue: ((isTurn: boolean) => void)[] = [];
  /** Issues that are judged. */
  readonly #judged = new Set<IssueId>();
  readonly #waiting = new Set<() => void>();
  /** What making the last folder took; null: none was made yet. */
  #makingMs: number | null = null;
  /** True: the last wait was in vain, and nothing came back since. */
  #vain = false;

  /** `makers`: how many folders may be made at once. */
  constructor(clock: Pick<Clock, 'monotonic' | 'sleep'>, makers: number) {
    this.#clock = clock;
    this.#makers = makers;
  }

  /** Waits until a folder may be made; null when one came back before that. */
  async turn(): Promise<Turn | null> {
    if (this.#making >= this.#makers) {
      // Whoever ends hands the turn over: the number of those at work stays.
      if (!(await new Promise<boolean>((resolve) => this.#queue.push(resolve)))) return null;
    } else this.#making += 1;
    let ended = false;
    return {
      over: () => {
        if (ended) return;
        ended = true;
        const next = this.#queue.shift();
        if (next === undefined) this.#making -= 1;
        else next(true);
      },
    };
  }

  /** Makes a folder and takes the time. */
  async making<T>(make: () => Promise<T>): Promise<T> {
    const start = this.#clock.monotonic();
    const made = await make();
    this.#makingMs = this.#clock.monotonic() - start;
    return made;
  }

  /** The agent of the Issue is done: its work is taken back and judged. */
  expect(issue: IssueId): void {
    this.#judged.add(issue);
  }

  /** The Issue is not about to give its folder back any more. */
  forget(issue: IssueId): void {
    this.#judged.delete(issue);
  }

  /** The folder came back. */
  cameBack(issue: IssueId): void {
    this.#judged.delete(issue);
    this.#vain = false;
    const [longest] = this.#waiting;
    if (longest === undefined) this.#queue.shift()?.(false);
    else longest();
  }

  /** Waits for a folder to come back as long as that pays; `held` is how many are with agents or judged. */
  async wait(held: number): Promise<void> {
    const working = held - this.#judged.size;
    const spare = Math.max(2, Math.ceil(working / 4));
    if (this.#vain || this.#makingMs === null || this.#judged.size <= spare) return;
    if (this.#waiting.size >= this.#judged.size) return;
    const patienceMs = Math.max(1000, 4 * this.#makingMs);
    const over = new AbortController();
    await new Promise<void>((resolve) => {
      const wake = (): void => {
        this.#waiting.delete(wake);
        resolve();
      };
      this.#waiting.add(wake);
      void this.#clock.sleep(patienceMs, over.signal).then(() => {
        if (!this.#waiting.has(wake)) return;
        this.#vain = true;
        wake();
      });
    });
    over.abort();
  }
}
