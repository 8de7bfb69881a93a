/**
 * Finds the engines that run by their locks, asks them to stop, and waits.
 *
 * S1 A process gets a signal only with `--now`, and only when its lock proves at that moment that it is that giro.
 * S2 An engine of another machine or container gets none: it is asked through its files and has to answer.
 * S3 A request goes to the holder of one lock; it never reaches an engine that came later.
 */
import type { SpecSlug } from '../issue.js';
import type { Clock } from '../platform/clock.js';
import { isAlive, type ProcessIdentity } from '../platform/identity.js';
import { isHeld, readEngines, type EngineLock } from '../store/engines.js';
import type { LockFile } from '../store/lock.js';
import { forgetStop, readStopAnswer, requestStop } from '../store/stop.js';

/** An engine that is to stop. */
export interface ToStop {
  readonly lock: EngineLock;
  readonly owner: LockFile;
  /** `null`: a backlog. */
  readonly spec: SpecSlug | null;
  /** What a backlog is at. */
  readonly specs: readonly SpecSlug[];
  /** Whether its process ends with it; a backlog goes on without one of its Specs. */
  readonly isWhole: boolean;
  /** Whether its process can be seen from here. */
  readonly isSeen: boolean;
}

/** How an engine that was asked came to its end. */
export interface Ended {
  readonly engine: ToStop;
  /**
   * `stopped`: it gave its lock back. `gone`: its process has ended and left its lock. `forced`: the same, by our signal.
   * `unseen`: it cannot be seen from here, and has not answered. `running`: the time was up.
   */
  readonly outcome: 'stopped' | 'gone' | 'forced' | 'unseen' | 'running';
  readonly ms: number;
  /** Whether it said that it is stopping. */
  readonly isStopping: boolean;
}

/** Picks what runs on a Spec, or (`null`) all that runs; a backlog stands for the Specs it is at. */
export async function enginesToStop(
  commonDir: string,
  spec: SpecSlug | null,
): Promise<{
  readonly engines: readonly ToStop[];
  readonly unreadable: readonly EngineLock[];
  /** Backlogs that run and were not meant. */
  readonly others: readonly ProcessIdentity[];
}> {
  const all = await readEngines(commonDir);
  const alive = all.flatMap((lock) => {
    if (lock.owner === null) return [];
    const standing = isAlive(lock.owner);
    return standing === 'dead' ? [] : [{ lock, owner: lock.owner, isSeen: standing === 'alive' }];
  });
  const backlogs = alive.filter(({ lock }) => lock.spec === null);
  const backlogOf = (owner: LockFile) =>
    backlogs.find((one) => one.owner.run === owner.run && isSame(one.owner, owner));
  const engines = alive.flatMap((one): ToStop[] => {
    const { lock, owner } = one;
    const isPart = lock.spec !== null && backlogOf(owner) !== undefined;
    if (spec === null ? isPart : lock.spec !== spec) return [];
    const specs = lock.spec === null ? alive.filter((other) => backlogOf(other.owner)?.lock === lock) : [];
    return [{ ...one, spec: lock.spec, specs: specs.flatMap((other) => other.lock.spec ?? []), isWhole: !isPart }];
  });
  const unreadable = all.filter((lock) => lock.owner === null && (spec === null || lock.spec === spec));
  return { engines, unreadable, others: spec === null ? [] : backlogs.map(({ owner }) => owner) };
}

function isSame(left: ProcessIdentity, right: ProcessIdentity): boolean {
  return (['pid', 'startTime', 'bootId', 'host', 'pidNamespace'] as const).every((key) => left[key] === right[key]);
}

/** How to wait. */
export interface Waiting {
  readonly now: boolean;
  readonly waitMs: number;
  readonly clock: Clock;
  /** Told now and then of each that has not ended. */
  readonly progress: (engine: ToStop, state: { readonly ms: number; readonly isStopping: boolean }) => void;
}

const lookEveryMs = 100;
const firstProgressMs = 2_000;
const progressEveryMs = 5_000;
/** An engine looks at least every five seconds; a slow disk and another's clock come on top. */
const answersWithinMs = 20_000;
/** Once the lock is back all is saved; the process may still wait for whoever reads its last lines. */
const lingersMs = 2_000;
/** Between two signals. */
const pauseMs = 400;
/** With `--now`: when the first of these is sent, to an engine that does not answer and to one that saves what was done. */
const patienceMs = { silent: 1_000, stopping: 25_000 };
const force: readonly { readonly afterMs: number; readonly signals: readonly NodeJS.Signals[] }[] = [
  // One that is suspended hears what it was asked when it goes on.
  { afterMs: 0, signals: ['SIGCONT'] },
  { afterMs: 7_000, signals: ['SIGTERM'] },
  // To giro the second is "at once"; both together would count as one.
  { afterMs: 7_500, signals: ['SIGTERM', 'SIGCONT'] },
  { afterMs: 10_000, signals: ['SIGKILL'] },
];

/** Asks each to stop, and waits until all have ended or the time is up. */
export function waitForEnd(engines: readonly ToStop[], waiting: Waiting): Promise<readonly Ended[]> {
  return Promise.all(engines.map((engine) => new OneEnd(engine, waiting).wait()));
}

/** Waits for one engine. */
class OneEnd {
  readonly #engine: ToStop;
  readonly #waiting: Waiting;
  readonly #start: number;
  #releasedAt: number | null = null;
  /** How many steps of force were taken, and when the last. */
  #sent = 0;
  #sentAt = 0;
  #progressAt = firstProgressMs;
  #isStopping = false;

  constructor(engine: ToStop, waiting: Waiting) {
    this.#engine = engine;
    this.#waiting = waiting;
    this.#start = waiting.clock.monotonic();
  }

  async wait(): Promise<Ended> {
    const { lock } = this.#engine;
    const { now, clock } = this.#waiting;
    for (;;) {
      const outcome = await this.#outcome();
      if (outcome !== null) {
        if (outcome !== 'running' && outcome !== 'unseen') await forgetStop(lock, 'own');
        return { engine: this.#engine, outcome, ms: Math.round(this.#ms()), isStopping: this.#isStopping };
      }
      // Again each time: an engine that begins removes what was asked of others, and two may ask at once.
      if (this.#releasedAt === null) await requestStop(lock, { at: clock.iso(), now });
      this.#isStopping ||= (await readStopAnswer(lock)) !== null;
      if (now) this.#useForce();
      this.#sayProgress();
      await clock.sleep(lookEveryMs);
    }
  }

  #ms(): number {
    return this.#waiting.clock.monotonic() - this.#start;
  }

  async #outcome(): Promise<Ended['outcome'] | null> {
    const { lock, owner, isSeen, isWhole } = this.#engine;
    const isDead = isSeen && isAlive(owner) === 'dead';
    const held = await isHeld(lock);
    if (!held) this.#releasedAt ??= this.#ms();
    if (isDead) return held ? (this.#sent > 1 ? 'forced' : 'gone') : 'stopped';
    if (this.#releasedAt !== null) {
      const waits = isSeen && isWhole && this.#ms() - this.#releasedAt < lingersMs;
      return waits ? null : 'stopped';
    }
    if (!isSeen && !this.#isStopping && this.#ms() >= answersWithinMs) return 'unseen';
    return this.#ms() >= this.#waiting.waitMs ? 'running' : null;
  }

  #useForce(): void {
    const { owner, isSeen, isWhole } = this.#engine;
    const next = force[this.#sent];
    if (next === undefined || !isSeen || !isWhole || this.#releasedAt !== null) return;
    if (this.#ms() < (this.#isStopping ? patienceMs.stopping : patienceMs.silent) + next.afterMs) return;
    if (this.#ms() - this.#sentAt < pauseMs) return;
    this.#sent += 1;
    this.#sentAt = this.#ms();
    for (const signal of next.signals) if (isAlive(owner) === 'alive') send(owner.pid, signal);
  }

  #sayProgress(): void {
    if (this.#ms() < this.#progressAt) return;
    this.#progressAt += progressEveryMs;
    this.#waiting.progress(this.#engine, { ms: this.#ms(), isStopping: this.#isStopping });
  }
}

function send(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // It ended in this moment, or belongs to somebody else: the next look tells.
  }
}
