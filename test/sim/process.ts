/** One life of giro in a simulated world: it can die at any step, and then nothing of it goes on. */
import { allowManyListeners } from '../../src/platform/clock.js';
import { VirtualClock } from '../rig/virtual-clock.js';

/** Something that must never happen did. */
export class Violation extends Error {}

/** What ends a life before its time. */
export type Fault =
  | { readonly kind: 'none' }
  /** Killed at this step of its own, before or after what the step does. */
  | { readonly kind: 'crash'; readonly step: number; readonly after: boolean }
  /** Killed while time passes. */
  | { readonly kind: 'crash-at'; readonly ms: number }
  /** Stopped in order: at once, or so that only what runs goes on to its end. */
  | { readonly kind: 'stop' | 'no-more'; readonly ms: number };

/** More steps than any run of these sizes takes. */
const mostSteps = 100_000;
const mostReads = 1_000_000;

/** A process that may be killed. */
export class Life {
  readonly clock: VirtualClock;
  readonly stop = new AbortController();
  readonly noMore = new AbortController();
  readonly #fault: Fault;
  #steps = 0;
  #reads = 0;
  #isAlive = true;
  #violation: Violation | null = null;
  #stoppedAt: number | null = null;
  #die: () => void = () => undefined;
  readonly #death = new Promise<'crashed'>((resolve) => {
    this.#die = () => {
      this.#isAlive = false;
      resolve('crashed');
    };
  });

  constructor(start: number, fault: Fault) {
    this.clock = new VirtualClock(start);
    this.#fault = fault;
    for (const { signal } of [this.stop, this.noMore]) allowManyListeners(signal);
  }

  get isAlive(): boolean {
    return this.#isAlive;
  }

  /** When somebody stopped it. */
  get stoppedAt(): number | null {
    return this.#stoppedAt;
  }

  get violation(): Violation | null {
    return this.#violation;
  }

  /** The first thing that must not happen ends everything. */
  fail(message: string): void {
    this.#violation ??= new Violation(message);
    this.#die();
  }

  /** Does one step, at which the process may die. */
  async step<T>(effect: () => T): Promise<T> {
    if (!this.#isAlive) return never();
    this.#steps += 1;
    if (this.#steps > mostSteps) this.fail('the run comes to no end');
    const fault = this.#fault;
    const isLast = fault.kind === 'crash' && fault.step === this.#steps;
    if (isLast && !fault.after) this.#die();
    if (!this.isAlive) return never();
    const result = effect();
    if (!isLast) return result;
    this.#die();
    return never();
  }

  /** Reads something: nothing can be told from dying before or after it. */
  async read<T>(look: () => T): Promise<T> {
    this.#reads += 1;
    if (this.#reads > mostReads) this.fail('the run comes to no end');
    return this.#isAlive ? look() : never();
  }

  /** Lets time pass until the work ends or the process dies. */
  async drive<T>(work: Promise<T>, onQuiet: () => void): Promise<T | 'crashed'> {
    const fault = this.#fault;
    if (fault.kind !== 'none' && fault.kind !== 'crash') {
      void this.clock.sleep(fault.ms).then(() => {
        this.#stoppedAt = this.clock.now();
        if (fault.kind === 'crash-at') this.#die();
        if (fault.kind === 'stop') this.stop.abort(new Error('stopped'));
        if (fault.kind !== 'crash-at') this.noMore.abort(new Error('stopped'));
      });
    }
    return this.clock.drive(Promise.race([work, this.#death]), onQuiet);
  }
}

/** What a process that is dead waits for. */
function never<T>(): Promise<T> {
  return new Promise(() => undefined);
}
