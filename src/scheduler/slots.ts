/**
 * The N agent slots, on p-queue: one limit for everybody who runs agents in this process.
 *
 * A slot is a task of the queue that ends when its holder lets go. Only who may start now is put into the queue: the
 * new Issues that the plan chose, and running Issues that wait for a slot again, which the queue serves by priority.
 *
 * Several Specs share a limit by rank: the agents of one come before those of every later one.
 */
import PQueue from 'p-queue';

/** Lets go of a slot; once. */
export type Release = () => void;

/** Room for the priorities of one rank: 34 years in milliseconds. */
const rankSpan = 2 ** 40;

/** The agents that may be at work at once, whoever they work for. */
export class AgentLimit {
  readonly concurrency: number;
  readonly #queue: PQueue;
  readonly #members: Slots[] = [];
  readonly #onFree: () => void;
  #free: number;

  /** `onFree` is called when something changed and everybody has taken what they want. */
  constructor(concurrency: number, onFree: () => void = () => undefined) {
    this.concurrency = concurrency;
    this.#queue = new PQueue({ concurrency });
    this.#free = concurrency;
    this.#onFree = onFree;
  }

  /** Slots that are promised to nobody and that nobody waits for. */
  get free(): number {
    return this.#freeFor(Infinity);
  }

  /** The slots as those of one rank see them; 0 comes first. */
  share(rank: number): AgentShare {
    return {
      join: (onRelease) => this.#join(rank, onRelease),
      use: async (run, signal) => {
        const slots = this.#join(rank, () => undefined);
        const close = (): void => {
          slots.close(signal.reason);
        };
        signal.addEventListener('abort', close, { once: true });
        try {
          const release = signal.aborted ? null : await slots.ask(rankSpan - 1).catch(() => null);
          return release === null ? null : await run().finally(release);
        } finally {
          signal.removeEventListener('abort', close);
          slots.leave();
        }
      },
    };
  }

  #join(rank: number, onRelease: () => void): Slots {
    const slots = new Slots(rank, onRelease, {
      freeFor: () => this.#freeFor(rank),
      take: (count) => {
        this.#free -= count;
      },
      released: () => {
        for (const member of [...this.#members]) member.onRelease();
        this.#onFree();
      },
      add: (priority, run) => {
        // These tasks cannot reject, so the promise of `add` and `onIdle`, which hides rejections, are not needed.
        void this.#queue.add(run, { priority: Math.min(priority, rankSpan - 1) - rank * rankSpan });
      },
      left: () => {
        this.#members.splice(this.#members.indexOf(slots), 1);
      },
    });
    this.#members.push(slots);
    this.#members.sort((one, other) => one.rank - other.rank);
    return slots;
  }

  /** Whoever waits for a slot again and comes before them is served first. */
  #freeFor(rank: number): number {
    return this.#members.reduce((free, member) => free - (member.rank < rank ? member.waiting.length : 0), this.#free);
  }
}

/** The part of one Spec in the limit. */
export interface AgentShare {
  /** `onRelease` is called before a slot that became free is given away: the last chance to add somebody better. */
  join(onRelease: () => void): Slots;
  /** Runs an agent that belongs to no Issue, before those that do; `null`: the signal was aborted before it began. */
  use<T>(run: () => Promise<T>, signal: AbortSignal): Promise<T | null>;
}

/** What slots need of their limit. */
interface Limit {
  readonly freeFor: () => number;
  readonly take: (count: number) => void;
  readonly released: () => void;
  readonly add: (priority: number, run: () => Promise<void>) => void;
  readonly left: () => void;
}

interface Waiter {
  readonly priority: number;
  readonly reject: (reason: unknown) => void;
}

/** The slots as one scheduler uses them. */
export class Slots {
  readonly rank: number;
  readonly onRelease: () => void;
  readonly #limit: Limit;
  readonly #waiting = new Set<Waiter>();
  /** Promised, but the queue has not come to them yet. */
  readonly #granted = new Set<object>();
  #closed = false;

  constructor(rank: number, onRelease: () => void, limit: Limit) {
    this.rank = rank;
    this.onRelease = onRelease;
    this.#limit = limit;
  }

  /** Slots that are promised to nobody; those in `waiting` take them unless somebody better is granted one. */
  get free(): number {
    return this.#limit.freeFor();
  }

  /** Priorities of those who wait for a slot again, best first. */
  get waiting(): readonly number[] {
    return Array.from(this.#waiting, ({ priority }) => priority).sort((left, right) => right - left);
  }

  /** Promises a free slot to a new Issue; `begin` is called at once, or a microtask later when the slot is just being freed. */
  grant(priority: number, begin: (release: Release) => void): void {
    this.#limit.take(1);
    const promise = {};
    this.#granted.add(promise);
    this.#add(priority, {
      isWanted: () => this.#granted.delete(promise),
      begin,
    });
  }

  /** Waits for a slot, by priority; rejects with the reason when the slots are closed. */
  ask(priority: number): Promise<Release> {
    return new Promise((resolve, reject) => {
      const waiter = { priority, reject };
      this.#waiting.add(waiter);
      this.#add(priority, {
        isWanted: () => this.#waiting.delete(waiter),
        begin: (release) => {
          this.#limit.take(1);
          resolve(release);
        },
      });
    });
  }

  /** Lets nobody else of these start. Slots in use stay in use until they are let go. */
  close(reason: unknown): void {
    if (this.#closed) return;
    this.#closed = true;
    // The queue comes to what was added some time; it then finds that nobody wants it any more.
    this.#limit.take(-this.#granted.size);
    this.#granted.clear();
    for (const { reject } of this.#waiting) reject(reason);
    this.#waiting.clear();
  }

  /** These slots are not used any more. */
  leave(): void {
    this.#limit.left();
    this.#limit.released();
  }

  #add(priority: number, task: { readonly isWanted: () => boolean; readonly begin: (release: Release) => void }): void {
    this.#limit.add(priority, () => {
      if (!task.isWanted()) return Promise.resolve();
      return new Promise<void>((end) => {
        task.begin(() => {
          this.#limit.take(-1);
          this.#limit.released();
          end();
        });
      });
    });
  }
}
