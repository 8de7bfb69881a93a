/**
 * The N agent slots, on p-queue.
 *
 * A slot is a task of the queue that ends when its holder lets go. Only who may start now is put into the queue: the
 * new Issues that the plan chose, and running Issues that wait for a slot again, which the queue serves by priority.
 */
import PQueue from 'p-queue';

/** Lets go of a slot; once. */
export type Release = () => void;

/** Counts and hands out agent slots. */
export class Slots {
  readonly #queue: PQueue;
  readonly #onRelease: () => void;
  readonly #waiting = new Set<{ readonly priority: number; readonly reject: (reason: unknown) => void }>();
  #free: number;

  /** `onRelease` is called before the queue gives the slot away: its last chance to add somebody better. */
  constructor(concurrency: number, onRelease: () => void) {
    this.#queue = new PQueue({ concurrency });
    this.#onRelease = onRelease;
    this.#free = concurrency;
  }

  /** Slots that are promised to nobody; those in `waiting` take them unless somebody better is granted one. */
  get free(): number {
    return this.#free;
  }

  /** Priorities of those who wait for a slot again, best first. */
  get waiting(): readonly number[] {
    return Array.from(this.#waiting, ({ priority }) => priority).sort((left, right) => right - left);
  }

  /** Promises a free slot to a new Issue; `begin` is called at once, or a microtask later when the slot is just being freed. */
  grant(priority: number, begin: (release: Release) => void): void {
    this.#free -= 1;
    this.#add(priority, begin);
  }

  /** Waits for a slot, by priority; rejects with the reason when the slots are closed. */
  ask(priority: number): Promise<Release> {
    return new Promise((resolve, reject) => {
      const waiter = { priority, reject };
      this.#waiting.add(waiter);
      this.#add(priority, (release) => {
        this.#waiting.delete(waiter);
        this.#free -= 1;
        resolve(release);
      });
    });
  }

  /** Lets nobody else start. Slots in use stay in use until they are let go. */
  close(reason: unknown): void {
    // The queue drops what has not begun without settling it, so those who wait are told here.
    this.#queue.clear();
    for (const { reject } of this.#waiting) reject(reason);
    this.#waiting.clear();
  }

  #add(priority: number, begin: (release: Release) => void): void {
    // These tasks cannot reject, so the promise of `add` and `onIdle`, which hides rejections, are not needed.
    void this.#queue.add(
      () =>
        new Promise<void>((end) => {
          begin(() => {
            this.#free += 1;
            this.#onRelease();
            end();
          });
        }),
      { priority },
    );
  }
}
