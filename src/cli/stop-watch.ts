/**
 * Hears that a run is to stop (`giro stop`, a `STOP` file) while it goes on: at once where the system tells of changes in a
 * folder, and in any case within seconds.
 */
import { join } from 'node:path';
import type { StopCause } from '../event.js';
import type { SpecSlug } from '../issue.js';
import type { Clock } from '../platform/clock.js';
import { watchFolder } from '../platform/watch.js';
import { locksFolder } from '../store/lock.js';
import { answerStop, forgetStop, readStopRequest, stopFileAt, type StopFile } from '../store/stop.js';
import type { StoppedBy } from './stopping.js';

/** How long it may take where nothing tells of changes: a few looks at names that are not there. */
const lookEveryMs = 5_000;
const writesWithinMs = 50;

/** Somebody wants a run to stop. */
export interface StopAsked extends StoppedBy {
  readonly by: StopCause;
  /** Without the grace for agents; said again when what was in order becomes urgent. */
  readonly now: boolean;
}

/** A run, or one Spec of it. */
export interface Stoppable {
  /** The lock it holds. */
  readonly lock: { readonly path: string; readonly text: string };
  /** Whose `STOP` files stop it; `null`: the one of the whole repository. */
  readonly files: readonly (SpecSlug | null)[];
  readonly asked: (asked: StopAsked) => void;
}

/** Watches for what a run may be told from outside. */
export class StopWatch {
  readonly #commonDir: string;
  readonly #clock: Clock;
  /** How urgently each was asked so far. */
  readonly #watched = new Map<Stoppable, 'not' | 'asked' | 'now'>();
  readonly #closed = new AbortController();
  #wake = new AbortController();
  #looking: Promise<void> = Promise.resolve();

  constructor(commonDir: string, clock: Clock) {
    this.#commonDir = commonDir;
    this.#clock = clock;
  }

  /** Watches until it is closed. */
  async run(): Promise<void> {
    const changed = (): void => {
      this.#wake.abort();
    };
    const watchers = [join(this.#commonDir, 'giro'), locksFolder(this.#commonDir)].map((folder) =>
      watchFolder(folder, changed),
    );
    try {
      while (!this.#closed.signal.aborted) {
        this.#wake = new AbortController();
        await this.#look();
        await this.#clock.sleep(lookEveryMs, AbortSignal.any([this.#wake.signal, this.#closed.signal]));
      }
    } finally {
      for (const watcher of watchers) watcher.close();
    }
  }

  /** Adds what may be stopped, and says at once when it is to be. */
  async add(one: Stoppable): Promise<void> {
    await forgetStop(one.lock, 'others');
    this.#watched.set(one, 'not');
    await this.#look();
  }

  /** It has come to its end. */
  async remove(one: Stoppable): Promise<void> {
    if (!this.#watched.delete(one)) return;
    await this.#looking;
    await forgetStop(one.lock, 'own');
  }

  /** Ends the watching. */
  async close(): Promise<void> {
    this.#closed.abort();
    for (const one of [...this.#watched.keys()]) await this.remove(one);
  }

  /** One look at a time: each is told once. What the disk refuses is tried again with the next look. */
  #look(): Promise<void> {
    this.#looking = this.#looking.then(async () => {
      for (const [one, urgency] of [...this.#watched]) {
        if (urgency !== 'now') await this.#lookAt(one, urgency).catch(unlessOfTheSystem);
      }
    });
    return this.#looking;
  }

  async #lookAt(one: Stoppable, urgency: 'not' | 'asked'): Promise<void> {
    const asked = await this.#askedOf(one);
    if (asked === null || (urgency === 'asked' && !asked.now) || !this.#watched.has(one)) return;
    this.#watched.set(one, asked.now ? 'now' : 'asked');
    one.asked(asked);
    // For whoever waits; a full disk must not keep the run from stopping.
    await answerStop(one.lock, { at: this.#clock.iso(), why: asked.why });
  }

  async #askedOf({ lock, files }: Stoppable): Promise<StopAsked | null> {
    const request = await readStopRequest(lock);
    if (request !== null) return { why: 'giro stop ended it', by: 'stop-command', first: null, now: request.now };
    for (const spec of files) {
      const file = await this.#fileOf(spec);
      if (file === null) continue;
      const says = file.says === '' ? '' : ` (${file.says})`;
      return { why: `the ${file.name} file${says} ended it`, by: 'stop-file', first: file.remove, now: false };
    }
    return null;
  }

  /** A shell makes the file before it writes what it says. */
  async #fileOf(spec: SpecSlug | null): Promise<StopFile | null> {
    const file = await stopFileAt(this.#commonDir, spec);
    if (file === null || file.says !== '') return file;
    await this.#clock.sleep(writesWithinMs, this.#closed.signal);
    return (await stopFileAt(this.#commonDir, spec)) ?? file;
  }
}

function unlessOfTheSystem(error: unknown): void {
  if (!(error instanceof Error && 'syscall' in error)) throw error;
}
