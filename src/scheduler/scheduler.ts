/**
 * Runs the Issues of one graph: a ready queue, not barriers (decision 0001).
 *
 * Invariants:
 *  1. Never more than N agents run at once, retries included.
 *  2. An Issue starts only when all its dependencies are integrated.
 *  3. The leases of an Issue are held from its dispatch until it is at rest; no two that overlap are held at once, nor one
 *     that another engine holds.
 *  4. Every Issue that can run is executed exactly once, and once more each time a human answers it (`reopen`).
 *  5. A rejected `execute` never goes unnoticed: everything else finishes, then `schedule` rejects with its error.
 *  6. After an abort, or once there is to be no more, nothing starts, and `schedule` settles only when every running
 *     `execute` has.
 *  7. No polling: a tick follows what happened. The one timer ends the hold of a slot (plan.ts); while something waits for
 *     another engine, `others` says when to look again.
 *
 * A tick computes everything from the facts below, so that it may be repeated and heals what an earlier one missed.
 *
 *   waiting -> granted -> leasing -> started <-> landing
 *      (dispatch)  (slot)  |           |          |     landing: its agent is gone; in gates, in the lane, or about to retry
 *      ^                   |           +-> at rest <-+  leasing: only what claims something, where there are other engines
 *      +--- (refused) -----+
 */
import type { IssueId } from '../issue.js';
import type { Clock } from '../platform/clock.js';
import { buildGraph } from './graph.js';
import { HoldWindow } from './hold.js';
import { Elsewhere, type ElsewherePorts } from './elsewhere.js';
import { Leases, claimOf } from './overlap.js';
import type { Claim } from './overlap.js';
import { compareCandidates, plan } from './plan.js';
import type { Candidate, Landing } from './plan.js';
import type { AgentShare, Release, Slots } from './slots.js';

/** How one execution of an Issue ended. */
export type ExecutionOutcome = 'integrated' | 'needs-human' | 'stopped';

/** Where an Issue's agents get their slots. */
export interface AgentSlots {
  /**
   * Runs an agent in one of the N slots: the first time in the one the Issue was dispatched with, later in the next
   * one its priority earns. Rejects with the signal's reason, without running, once the run is aborted. An Issue that
   * needs no agent gives its slot back with an empty run; else it keeps it until it is at rest.
   */
  agent<T>(run: () => Promise<T>): Promise<T>;
}

/** One Issue of a run. */
export interface ScheduledIssue {
  readonly id: IssueId;
  readonly dependsOn: readonly IssueId[];
  readonly touches: readonly string[];
  readonly resources: readonly string[];
  /** It is done already: satisfied for its dependents, not executed. */
  readonly settled: boolean;
  /** It needs a human or is `wontfix` already: not executed, its dependents wait. */
  readonly blocked: boolean;
  /** It has work in progress: before new ones of equal priority. */
  readonly resuming: boolean;
}

/** A run of the scheduler, with all it depends on. */
export interface SchedulerRequest extends ElsewherePorts {
  /** A set that `checkGraph` accepts. */
  readonly issues: readonly ScheduledIssue[];
  /** Agents at once. Other Specs may have a part in the same limit. */
  readonly agents: AgentShare;
  /** Expected duration, in any one unit. */
  readonly estimate: (id: IssueId) => number;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** Aborted: no agent is started any more, while what runs goes on to its end. */
  readonly noMore?: AbortSignal;
  /** Told when something ready begins or ceases to be held back for a landing: it will start, though nothing runs. */
  readonly onHold?: (isHolding: boolean) => void;
  /** Told how long an integrated Issue took from the end of its last agent. */
  readonly onLanded?: (ms: number) => void;
  /** Handed a function that lets an Issue which needs a human run again, for one was there; false: too late. */
  readonly onStart?: (reopen: (id: IssueId) => boolean) => void;
  /** Runs an Issue until it is at rest. Rejecting with the own reason of one of the signals counts as `stopped`. */
  readonly execute: (id: IssueId, slots: AgentSlots) => Promise<ExecutionOutcome>;
}

/** Runs every Issue that can run; tells how each ended that was neither settled nor blocked at the start. */
export function schedule(request: SchedulerRequest): Promise<ReadonlyMap<IssueId, ExecutionOutcome | 'waiting'>> {
  return new Scheduling(request).run();
}

type Standing =
  | { readonly kind: 'waiting' | 'granted' | 'leasing' | 'started' }
  | { readonly kind: 'landing'; readonly since: number }
  | { readonly kind: 'at-rest'; readonly outcome: ExecutionOutcome }
  | { readonly kind: 'threw' };

interface Entry extends Candidate {
  readonly dependents: Entry[];
  /** Dependencies that are not integrated. */
  unmet: number;
  standing: Standing;
  /** At rest since before this run, and never executed in it. */
  outside: boolean;
}

class Scheduling {
  readonly #request: SchedulerRequest;
  readonly #entries: ReadonlyMap<IssueId, Entry>;
  readonly #slots: Slots;
  readonly #leases = new Leases();
  readonly #elsewhere: Elsewhere;
  /** Own leases, and those of other engines as they were seen. */
  readonly #allLeases = {
    isFree: (claim: Claim): boolean => this.#leases.isFree(claim) && !this.#elsewhere.isHeld(claim),
    isFreeWithout: (claim: Claim, other: Claim): boolean =>
      this.#leases.isFreeWithout(claim, other) && !this.#elsewhere.isHeld(claim),
  };
  readonly #window = new HoldWindow();
  /** Waiting, with nothing unmet; best first. */
  readonly #ready: Entry[] = [];
  readonly #landing = new Set<Entry>();
  readonly #errors: unknown[] = [];
  /** Granted, started or landing. */
  #active = 0;
  #alarm: { readonly at: number; readonly off: AbortController } | null = null;
  #finish: () => void = () => undefined;
  #finished = false;

  constructor(request: SchedulerRequest) {
    this.#request = request;
    this.#entries = entriesOf(request);
    this.#elsewhere = new Elsewhere(request, () => {
      this.#tick();
    });
    this.#slots = request.agents.join(() => {
      this.#tick();
    });
    for (const entry of this.#entries.values()) if (entry.unmet === 0 && !entry.outside) this.#ready.push(entry);
    this.#ready.sort(compareCandidates);
  }

  async run(): Promise<ReadonlyMap<IssueId, ExecutionOutcome | 'waiting'>> {
    const signals = this.#signals();
    const onAbort = (): void => {
      this.#abort();
    };
    for (const signal of signals) signal.addEventListener('abort', onAbort, { once: true });
    await new Promise<void>((resolve) => {
      this.#finish = resolve;
      this.#request.onStart?.((id) => this.#reopen(id));
      this.#tick();
    });
    this.#finished = true;
    for (const signal of signals) signal.removeEventListener('abort', onAbort);
    this.#slots.leave();
    this.#errors.push(...(await this.#elsewhere.close()));
    if (this.#errors.length > 1) throw new AggregateError(this.#errors, 'several Issues hit a bug');
    if (this.#errors.length === 1) throw this.#errors[0];
    const inside = [...this.#entries.values()].filter((entry) => !entry.outside);
    return new Map(inside.map((entry) => [entry.id, outcomeOf(entry)]));
  }

  /** Lets an Issue that needs a human wait for its turn again. */
  #reopen(id: IssueId): boolean {
    const entry = this.#entries.get(id);
    if (this.#finished || this.#ended() !== undefined) return false;
    if (entry?.standing.kind !== 'at-rest' || entry.standing.outcome !== 'needs-human') return false;
    entry.standing = { kind: 'waiting' };
    entry.outside = false;
    if (entry.unmet === 0) this.#insertReady(entry);
    this.#tick();
    return true;
  }

  #signals(): readonly AbortSignal[] {
    const { signal, noMore } = this.#request;
    return noMore === undefined ? [signal] : [signal, noMore];
  }

  /** The signal that keeps everything from starting. */
  #ended(): AbortSignal | undefined {
    return this.#signals().find((signal) => signal.aborted);
  }

  #tick(): void {
    if (this.#ended() === undefined) {
      const { start, heldUntil } = plan({
        free: this.#slots.free,
        ready: this.#ready,
        retries: this.#slots.waiting,
        landings: this.#landings(),
        leases: this.#allLeases,
      });
      this.#dispatch(start.flatMap(({ id }) => this.#entries.get(id) ?? []));
      this.#setAlarm(heldUntil);
      this.#elsewhere.heed(this.#ready);
    }
    // What is ready while nothing runs waits for slots that other Specs have.
    if (this.#active === 0 && (this.#ready.length === 0 || this.#ended() !== undefined)) this.#finish();
  }

  /** Marks all before it starts any: what starts may tick again at once. */
  #dispatch(chosen: readonly Entry[]): void {
    for (const entry of chosen) {
      entry.standing = { kind: 'granted' };
      this.#ready.splice(this.#ready.indexOf(entry), 1);
      this.#leases.take(entry.claim);
      this.#active += 1;
    }
    for (const entry of chosen) {
      this.#slots.grant(entry.priority, (release) => {
        if (this.#elsewhere.concerns(entry)) void this.#lease(entry, release);
        else this.#start(entry, release);
      });
    }
  }

  #start(entry: Entry, release: Release): void {
    entry.standing = { kind: 'started' };
    void this.#execute(entry, release);
  }

  /** Takes the lease of an Issue that has its slot, against other engines. */
  async #lease(entry: Entry, release: Release): Promise<void> {
    entry.standing = { kind: 'leasing' };
    try {
      const isTaken = await this.#elsewhere.take(entry);
      if (isTaken && this.#ended() === undefined) {
        this.#start(entry, release);
        return;
      }
      if (isTaken) this.#elsewhere.giveBack(entry);
      this.#leases.giveBack(entry.claim);
      this.#active -= 1;
      entry.standing = { kind: 'waiting' };
      this.#insertReady(entry);
    } catch (error) {
      this.#errors.push(error);
      this.#settle(entry, { kind: 'threw' });
    }
    release();
    this.#tick();
  }

  async #execute(entry: Entry, release: Release): Promise<void> {
    const { execute } = this.#request;
    const first: { slot: Release | null } = { slot: release };
    const slots: AgentSlots = {
      agent: async (run) => {
        const slot = first.slot ?? (await this.#askAgain(entry));
        first.slot = null;
        return this.#runAgent(entry, slot, run);
      },
    };
    try {
      this.#settle(entry, { kind: 'at-rest', outcome: await execute(entry.id, slots) });
    } catch (error) {
      const isStop = this.#signals().some((signal) => signal.aborted && error === signal.reason);
      if (!isStop) this.#errors.push(error);
      this.#settle(entry, isStop ? { kind: 'at-rest', outcome: 'stopped' } : { kind: 'threw' });
    }
    first.slot?.();
    this.#tick();
  }

  async #askAgain(entry: Entry): Promise<Release> {
    this.#ended()?.throwIfAborted();
    this.#stand(entry, { kind: 'started' });
    const slot = this.#slots.ask(entry.priority);
    // What was held for its landing is free again.
    this.#tick();
    return slot;
  }

  async #runAgent<T>(entry: Entry, release: Release, run: () => Promise<T>): Promise<T> {
    const { clock } = this.#request;
    const since = clock.monotonic();
    try {
      this.#ended()?.throwIfAborted();
      return await run();
    } finally {
      const now = clock.monotonic();
      this.#window.agentTook(now - since);
      if (entry.standing.kind === 'started') this.#stand(entry, { kind: 'landing', since: now });
      release();
    }
  }

  #settle(entry: Entry, standing: Extract<Standing, { kind: 'at-rest' | 'threw' }>): void {
    const isIntegrated = standing.kind === 'at-rest' && standing.outcome === 'integrated';
    if (isIntegrated && entry.standing.kind === 'landing') {
      const ms = this.#request.clock.monotonic() - entry.standing.since;
      this.#window.landingTook(ms);
      this.#request.onLanded?.(ms);
    }
    this.#stand(entry, standing);
    this.#leases.giveBack(entry.claim);
    this.#elsewhere.giveBack(entry);
    this.#active -= 1;
    if (!isIntegrated) return;
    for (const dependent of entry.dependents) {
      dependent.unmet -= 1;
      if (dependent.unmet === 0 && dependent.standing.kind === 'waiting') this.#insertReady(dependent);
    }
  }

  #stand(entry: Entry, standing: Standing): void {
    entry.standing = standing;
    if (standing.kind === 'landing') this.#landing.add(entry);
    else this.#landing.delete(entry);
  }

  #insertReady(entry: Entry): void {
    let low = 0;
    let high = this.#ready.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      const other = this.#ready[middle];
      if (other !== undefined && compareCandidates(other, entry) < 0) low = middle + 1;
      else high = middle;
    }
    this.#ready.splice(low, 0, entry);
  }

  /** Issues that left their agent so recently that a slot may be held for what they release. */
  #landings(): readonly Landing[] {
    if (this.#landing.size === 0 || this.#slots.free <= 0 || this.#ready.length === 0) return [];
    const now = this.#request.clock.monotonic();
    const windowMs = this.#window.ms;
    const landings: Landing[] = [];
    for (const { standing, claim, dependents } of this.#landing) {
      if (standing.kind !== 'landing' || standing.since + windowMs <= now) continue;
      const releases = dependents.filter((dependent) => dependent.unmet === 1 && dependent.standing.kind === 'waiting');
      landings.push({ claim, until: standing.since + windowMs, releases });
    }
    return landings;
  }

  #setAlarm(at: number | null): void {
    if (at === (this.#alarm?.at ?? null)) return;
    this.#alarm?.off.abort();
    this.#alarm = null;
    const { clock, onHold } = this.#request;
    onHold?.(at !== null);
    if (at === null) return;
    const alarm = { at, off: new AbortController() };
    this.#alarm = alarm;
    void clock.sleep(at - clock.monotonic(), alarm.off.signal).then(() => {
      if (this.#alarm !== alarm) return;
      this.#alarm = null;
      onHold?.(false);
      this.#tick();
    });
  }

  #abort(): void {
    this.#setAlarm(null);
    this.#slots.close(this.#ended()?.reason);
    for (const entry of this.#entries.values()) {
      if (entry.standing.kind !== 'granted') continue;
      entry.standing = { kind: 'waiting' };
      this.#leases.giveBack(entry.claim);
      this.#active -= 1;
    }
    this.#tick();
  }
}

function entriesOf({ issues, estimate }: SchedulerRequest): ReadonlyMap<IssueId, Entry> {
  const graph = buildGraph(issues);
  const priorities = graph.criticalPath(estimate);
  const settled = new Set(issues.filter((issue) => issue.settled).map((issue) => issue.id));
  const open = issues.filter((issue) => !issue.settled);
  const entries = new Map<IssueId, Entry>();
  for (const { id, dependsOn, resuming, touches, resources, blocked } of open) {
    entries.set(id, {
      id,
      priority: priorities.get(id) ?? 0,
      resuming,
      claim: claimOf({ touches, resources }),
      dependents: [],
      // An unknown dependency is never met: waiting is the safe mistake.
      unmet: dependsOn.filter((dependency) => !settled.has(dependency)).length,
      standing: blocked ? { kind: 'at-rest', outcome: 'needs-human' } : { kind: 'waiting' },
      outside: blocked,
    });
  }
  for (const entry of entries.values()) {
    for (const id of graph.dependents(entry.id)) {
      const dependent = entries.get(id);
      if (dependent !== undefined) entry.dependents.push(dependent);
    }
  }
  return entries;
}

function outcomeOf(entry: Entry): ExecutionOutcome | 'waiting' {
  return entry.standing.kind === 'at-rest' ? entry.standing.outcome : 'waiting';
}
