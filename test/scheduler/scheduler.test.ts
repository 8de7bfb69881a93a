import { setImmediate as turn } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import type { IssueId } from '../../src/issue.js';
import type { LeaseHolder } from '../../src/event.js';
import type { OtherEngines } from '../../src/scheduler/lease.js';
import { claimOf, sharedBy, type Claim } from '../../src/scheduler/overlap.js';
import { schedule } from '../../src/scheduler/scheduler.js';
import type { AgentSlots, ExecutionOutcome, ScheduledIssue, SchedulerRequest } from '../../src/scheduler/scheduler.js';
import { AgentLimit } from '../../src/scheduler/slots.js';
import { FakeClock } from '../rig/clock.js';
import { letter, nodes } from './issues.js';

/** An Issue in the hands of the test: each step of its execution waits to be told. */
class Execution {
  readonly slots: AgentSlots;
  readonly outcome: Promise<ExecutionOutcome>;
  readonly #agents: (() => void)[] = [];
  #resolve: (outcome: ExecutionOutcome) => void = () => undefined;
  #reject: (error: unknown) => void = () => undefined;
  agentsRunning = 0;
  agentsRun = 0;

  constructor(slots: AgentSlots) {
    this.slots = slots;
    this.outcome = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
  }

  /** Asks for a slot and keeps the agent there until `endAgent`. */
  ask(): Promise<void> {
    const asked = this.slots.agent(async () => {
      this.agentsRun += 1;
      this.agentsRunning += 1;
      await new Promise<void>((end) => this.#agents.push(end));
      this.agentsRunning -= 1;
    });
    asked.catch(() => undefined);
    return asked;
  }

  async endAgent(): Promise<void> {
    this.#agents.shift()?.();
    await turn();
  }

  async end(outcome: ExecutionOutcome): Promise<void> {
    this.#resolve(outcome);
    await turn();
  }

  async fail(error: unknown): Promise<void> {
    this.#reject(error);
    await turn();
  }
}

interface Bench {
  readonly clock: FakeClock;
  readonly abort: AbortController;
  readonly result: ReturnType<typeof schedule>;
  /** Names of the Issues that began, in order. */
  readonly began: string[];
  readonly of: (name: string) => Execution;
  /** Names of those with an agent at work. */
  readonly working: () => string;
}

/** Schedules a small graph; each execution asks for its first agent at once unless told otherwise. */
function bench(
  graph: string,
  more: Partial<Omit<SchedulerRequest, 'estimate'>> & {
    readonly issue?: Readonly<Record<string, Partial<ScheduledIssue>>>;
    readonly estimate?: Readonly<Record<string, number>>;
    readonly asks?: boolean;
    readonly concurrency?: number;
  } = {},
): Bench {
  const clock = new FakeClock();
  const abort = new AbortController();
  const executions = new Map<IssueId, Execution>();
  const began: string[] = [];
  const short = (own: IssueId): string => own.replace(/^\d+-/, '');
  const result = schedule({
    ...(more.onHold === undefined ? {} : { onHold: more.onHold }),
    ...(more.others === undefined ? {} : { others: more.others }),
    ...(more.onLease === undefined ? {} : { onLease: more.onLease }),
    issues: nodes(graph).map((node) => ({
      ...node,
      touches: [],
      resources: [],
      settled: false,
      blocked: false,
      resuming: false,
      ...more.issue?.[short(node.id)],
    })),
    agents: more.agents ?? new AgentLimit(more.concurrency ?? 9).share(0),
    ...(more.noMore === undefined ? {} : { noMore: more.noMore }),
    estimate: (own) => more.estimate?.[short(own)] ?? 1,
    clock,
    signal: more.signal ?? abort.signal,
    execute:
      more.execute ??
      ((own, slots) => {
        expect(executions.has(own), 'executed once').toBe(false);
        const execution = new Execution(slots);
        executions.set(own, execution);
        began.push(short(own));
        if (more.asks !== false) void execution.ask();
        return execution.outcome;
      }),
  });
  result.catch(() => undefined);
  const of = (name: string): Execution => {
    const execution = executions.get(letter(name));
    if (execution === undefined) throw new Error(`${name} has not begun`);
    return execution;
  };
  const working = (): string => began.filter((name) => of(name).agentsRunning > 0).join(' ');
  return { clock, abort, result, began, of, working };
}

const land = async (execution: Execution): Promise<void> => {
  await execution.endAgent();
  await execution.end('integrated');
};

describe('dispatch', () => {
  test('what is ready begins in the same tick, before anybody awaits', () => {
    expect(bench('a, b, c: a').began).toEqual(['a', 'b']);
  });

  test('a dependent begins at the integration of its last dependency, not at the end of the agent or the gates', async () => {
    const run = bench('a, b, c: a b');
    await land(run.of('a'));
    await run.of('b').endAgent();
    await run.clock.advance(3_600_000);
    expect(run.began).toEqual(['a', 'b']);
    await run.of('b').end('integrated');
    expect(run.began).toEqual(['a', 'b', 'c']);
    await land(run.of('c'));
    expect(Object.fromEntries(await run.result)).toEqual({
      '1-a': 'integrated',
      '2-b': 'integrated',
      '3-c': 'integrated',
    });
  });

  test('a dependency that is red on the merged tree keeps its dependents waiting, and nobody else', async () => {
    const run = bench('a, b: a, c: b, d');
    await run.of('a').endAgent();
    await run.of('a').end('needs-human');
    await land(run.of('d'));
    expect(Object.fromEntries(await run.result)).toEqual({
      '1-a': 'needs-human',
      '2-b': 'waiting',
      '3-c': 'waiting',
      '4-d': 'integrated',
    });
  });

  test('the longest remaining path is served first, then work in progress, then the number', async () => {
    const run = bench('a, b, c, d, e: d', { concurrency: 1, issue: { c: { resuming: true } } });
    for (const name of ['d', 'c', 'a', 'b']) {
      expect(run.began.at(-1)).toBe(name);
      // Work in progress loses to a longer path: e is behind d only, and its path is as short as the others'.
      await land(run.of(name));
    }
    await land(run.of('e'));
    expect(run.began).toEqual(['d', 'c', 'a', 'b', 'e']);
    await run.result;
  });

  test('what is done already satisfies its dependents and what is blocked does not; neither is run nor reported', async () => {
    const run = bench('a, b: a, c, d: c', { issue: { a: { settled: true }, c: { blocked: true } } });
    expect(run.began).toEqual(['b']);
    await land(run.of('b'));
    expect(Object.fromEntries(await run.result)).toEqual({ '2-b': 'integrated', '4-d': 'waiting' });
  });

  test('an Issue with an unknown dependency waits: starting it would be the worse mistake', async () => {
    const run = bench('b: z');
    expect(Object.fromEntries(await run.result)).toEqual({ '2-b': 'waiting' });
  });

  test('nothing to run is a result, not a wait', async () => {
    expect([...(await bench('a', { issue: { a: { settled: true } } }).result)]).toEqual([]);
  });

  test('priorities count in the unit of the estimates, whole paths and not single Issues', () => {
    const run = bench('a, b, c: b', { concurrency: 1, estimate: { a: 1000, b: 1, c: 1000 } });
    expect(run.began).toEqual(['b']);
  });
});

describe('slots', () => {
  test('an Issue in its gates gives its slot to the next, and its retry waits for one', async () => {
    const run = bench('a, b, c', { concurrency: 1 });
    await run.of('a').endAgent();
    expect(run.working()).toBe('b');
    void run.of('a').ask();
    await turn();
    expect(run.working()).toBe('b');
    await run.of('b').endAgent();
    expect(run.working(), 'the retry outranks c, which is equal and new').toBe('a');
    expect(run.began).toEqual(['a', 'b']);
    await run.of('a').endAgent();
    expect(run.working()).toBe('c');
  });

  test('a new Issue with a longer path is served before a retry with a shorter one', async () => {
    const run = bench('f, p, r, n: p, m: n, g, h', { concurrency: 3, estimate: { f: 5, g: 0.5, h: 0.4 } });
    await run.of('r').endAgent();
    await run.of('p').endAgent();
    expect(run.working()).toBe('f g h');
    void run.of('r').ask();
    await run.of('p').end('integrated');
    expect(run.working(), 'no slot is free').toBe('f g h');
    await run.of('f').endAgent();
    expect(run.working()).toBe('g h n');
    await run.of('g').endAgent();
    expect(run.working()).toBe('r h n');
  });

  test('retries are served by priority, not in the order they came', async () => {
    const run = bench('a, b, c, d: c, e', { concurrency: 3, estimate: { e: 0.5 } });
    for (const name of ['a', 'c', 'b']) await run.of(name).endAgent();
    expect(run.working()).toBe('e');
    // Two slots are left for three retries, then none.
    for (const name of ['b', 'a', 'c']) void run.of(name).ask();
    await turn();
    expect(run.working()).toBe('a b e');
    void run.of('b').ask();
    await run.of('a').endAgent();
    expect(run.working()).toBe('c b e');
  });

  test('an Issue that never asks for an agent gives its slot back when it is at rest', async () => {
    const run = bench('a, b', { concurrency: 1, asks: false });
    expect(run.began).toEqual(['a']);
    await run.of('a').end('integrated');
    expect(run.began).toEqual(['a', 'b']);
    await run.of('b').end('integrated');
    await run.result;
  });

  test('an agent that throws gives its slot back, and its error goes to its own execution', async () => {
    const run = bench('a, b', { concurrency: 1, asks: false });
    await expect(run.of('a').slots.agent(() => Promise.reject(new Error('no such program')))).rejects.toThrow(
      'no such program',
    );
    await turn();
    expect(run.began).toEqual(['a', 'b']);
  });

  test('the value of an agent is handed on', async () => {
    const run = bench('a', { asks: false });
    await expect(run.of('a').slots.agent(() => Promise.resolve(42))).resolves.toBe(42);
  });
});

describe('leases', () => {
  test('are held until the Issue is at rest, whatever its outcome, and block only what overlaps', async () => {
    for (const outcome of ['integrated', 'needs-human', 'stopped'] as const) {
      const run = bench('a, b, c', {
        issue: {
          a: { touches: ['src/auth/**'] },
          b: { touches: ['src/auth/login.ts'] },
          c: { touches: ['src/authors/**'] },
        },
      });
      expect(run.began).toEqual(['a', 'c']);
      await run.of('a').endAgent();
      expect(run.began).toEqual(['a', 'c']);
      await run.of('a').end(outcome);
      expect(run.began).toEqual(['a', 'c', 'b']);
    }
  });
});

describe('bugs', () => {
  test('an execute that throws is noticed: the others finish, then its error comes out', async () => {
    const error = new Error('a bug');
    const run = bench('a, b, c, d: b, e: a', { concurrency: 1 });
    await land(run.of('a'));
    await run.of('b').endAgent();
    await run.of('b').fail(error);
    await land(run.of('c'));
    await land(run.of('e'));
    await expect(run.result).rejects.toBe(error);
    expect(run.began).toEqual(['a', 'b', 'c', 'e']);
  });

  test('also when it throws before it returns a promise', async () => {
    const error = new Error('at once');
    const run = bench('a', {
      execute: () => {
        throw error;
      },
    });
    await expect(run.result).rejects.toBe(error);
  });

  test('also when it rejects with nothing', async () => {
    const run = bench('a');
    await run.of('a').fail(undefined);
    await expect(run.result).rejects.toBeUndefined();
  });

  test('several come out together', async () => {
    const run = bench('a, b');
    await run.of('a').fail(new Error('one'));
    await run.of('b').fail(new Error('two'));
    await expect(run.result).rejects.toMatchObject({ errors: [{ message: 'one' }, { message: 'two' }] });
  });
});

describe('abort', () => {
  test('nothing starts any more, and the result waits for what runs', async () => {
    const run = bench('a, b, c: a', { concurrency: 1 });
    const settled = { is: false };
    void run.result.then(() => {
      settled.is = true;
    });
    run.abort.abort(new Error('stop'));
    await run.of('a').endAgent();
    expect(settled.is).toBe(false);
    await run.of('a').end('integrated');
    expect(run.began).toEqual(['a']);
    expect(Object.fromEntries(await run.result)).toEqual({ '1-a': 'integrated', '2-b': 'waiting', '3-c': 'waiting' });
  });

  test('whoever waits for a slot is told at once, with the reason, and no agent runs', async () => {
    const reason = new Error('stop');
    const run = bench('a, b', { concurrency: 1 });
    await run.of('a').endAgent();
    const asked = run.of('a').ask();
    run.abort.abort(reason);
    await expect(asked).rejects.toBe(reason);
    await expect(run.of('a').ask()).rejects.toBe(reason);
    expect(run.of('a').agentsRun).toBe(1);
    await run.of('a').fail(reason);
    await land(run.of('b'));
    // Passing the reason on is how an execution stops; it is no bug.
    expect(Object.fromEntries(await run.result)).toEqual({ '1-a': 'stopped', '2-b': 'integrated' });
  });

  test('the slot of the dispatch is not used after it either', async () => {
    const run = bench('a', { asks: false });
    run.abort.abort(new Error('stop'));
    await expect(run.of('a').ask()).rejects.toThrow('stop');
    expect(run.of('a').agentsRun).toBe(0);
  });

  test('one that came before the start lets nothing start', async () => {
    const run = bench('a', { signal: AbortSignal.abort() });
    expect(run.began).toEqual([]);
    expect(Object.fromEntries(await run.result)).toEqual({ '1-a': 'waiting' });
  });

  test('an Issue promised a slot that is just being freed stays where it was', async () => {
    const run = bench('a, b', { concurrency: 1, asks: false });
    let beganAtAbort: readonly string[] = [];
    await run.of('a').slots.agent(() => {
      // Two promises later the slot is promised to b, and the queue has not given it away yet.
      queueMicrotask(() => {
        queueMicrotask(() => {
          beganAtAbort = [...run.began];
          run.abort.abort(new Error('stop'));
        });
      });
      return Promise.resolve();
    });
    expect(beganAtAbort).toEqual(['a']);
    await run.of('a').end('stopped');
    expect(Object.fromEntries(await run.result)).toEqual({ '1-a': 'stopped', '2-b': 'waiting' });
    await turn();
    expect(run.began).toEqual(['a']);
  });

  test('a real error after it is still a bug', async () => {
    const run = bench('a');
    run.abort.abort(new Error('stop'));
    await run.of('a').fail(new Error('a bug'));
    await expect(run.result).rejects.toThrow('a bug');
  });
});

describe('a slot that frees just before a landing', () => {
  /** x has taken 10 s, so that landings are worth 500 ms; a leads to the long path of b, and c is short. */
  async function beforeLanding(onHold: (isHolding: boolean) => void = () => undefined): Promise<Bench> {
    const run = bench('x, a: x, b: a, c: x, d: x', { concurrency: 1, estimate: { b: 10 }, onHold });
    await run.clock.advance(10_000);
    await land(run.of('x'));
    expect(run.working()).toBe('a');
    await run.clock.advance(10_000);
    await run.of('a').endAgent();
    return run;
  }

  test('is held for the more critical Issue that the landing releases', async () => {
    const run = await beforeLanding();
    expect(run.working()).toBe('');
    await run.clock.advance(40);
    await run.of('a').end('integrated');
    expect(run.working()).toBe('b');
    expect(run.clock.sleeping, 'the timer is off').toBe(0);
  });

  test('is held for a bounded time, by the injected clock', async () => {
    const run = await beforeLanding();
    await run.clock.advance(49);
    expect(run.working()).toBe('');
    await run.clock.advance(1);
    expect(run.working()).toBe('c');
    expect(run.clock.sleeping).toBe(0);
    await run.of('a').end('integrated');
    expect(run.working()).toBe('c');
  });

  test('is told while it is held: what is ready will start, although nothing runs', async () => {
    const told: boolean[] = [];
    const late = await beforeLanding((isHolding) => told.push(isHolding));
    expect(told).toEqual([true]);
    await late.clock.advance(50);
    expect(told).toEqual([true, false]);
    const landed = await beforeLanding((isHolding) => told.push(isHolding));
    await landed.of('a').end('integrated');
    const stopped = await beforeLanding((isHolding) => told.push(isHolding));
    stopped.abort.abort();
    expect(told).toEqual([true, false, true, false, true, false]);
  });

  test('is not held when the landing fails or goes back to its agent', async () => {
    const failed = await beforeLanding();
    await failed.of('a').end('needs-human');
    expect(failed.working()).toBe('c');
    const retried = await beforeLanding();
    void retried.of('a').ask();
    await turn();
    expect(retried.working()).toBe('a');
  });

  test('an abort ends the hold and its timer', async () => {
    const run = await beforeLanding();
    run.abort.abort();
    expect(run.clock.sleeping).toBe(0);
    await run.of('a').end('stopped');
    expect((await run.result).get(letter('c'))).toBe('waiting');
  });

  test('two slots held for one landing are both free again when it goes back to its agent', async () => {
    const run = bench('x, a: x, b: a, e: a, c: x, d: x, f: x', { concurrency: 3, estimate: { b: 10, e: 10, f: 5 } });
    await run.clock.advance(10_000);
    await land(run.of('x'));
    expect(run.working()).toBe('a f c');
    await run.clock.advance(10_000);
    await run.of('a').endAgent();
    await run.of('c').endAgent();
    expect(run.working(), 'd is ready').toBe('f');
    void run.of('a').ask();
    await turn();
    expect(run.working()).toBe('a f d');
  });
});

describe('several Specs in one limit', () => {
  test('the agents of the first rank come first, and together they are never more than the limit', async () => {
    const limit = new AgentLimit(2);
    const first = bench('a, b', { agents: limit.share(0) });
    const second = bench('a, b, c', { agents: limit.share(1) });
    await turn();
    expect([first.working(), second.working(), limit.free]).toEqual(['a b', '', 0]);
    await first.of('a').endAgent();
    expect([first.working(), second.working()]).toEqual(['b', 'a']);
    // A retry of the first goes before what the second has ready.
    void first.of('a').ask();
    await second.of('a').endAgent();
    await turn();
    expect([first.working(), second.working()]).toEqual(['a b', '']);
  });

  test('an abort of one leaves the slots to the other', async () => {
    const limit = new AgentLimit(1);
    const first = bench('a, b', { agents: limit.share(0) });
    const second = bench('a', { agents: limit.share(1) });
    await turn();
    first.abort.abort(new Error('stop'));
    await first.of('a').endAgent();
    await first.of('a').end('stopped');
    expect(await first.result).toBeInstanceOf(Map);
    await turn();
    expect(second.working()).toBe('a');
    await second.of('a').endAgent();
    await second.of('a').end('integrated');
    await second.result;
    expect(limit.free).toBe(1);
  });

  test('an agent of no Issue waits for a slot like any other, and does not start after the signal', async () => {
    const limit = new AgentLimit(1);
    const other = bench('a', { agents: limit.share(1) });
    await turn();
    const stop = new AbortController();
    let runs = 0;
    const used = limit.share(0).use(() => Promise.resolve((runs += 1)), stop.signal);
    await turn();
    expect(runs).toBe(0);
    await other.of('a').endAgent();
    expect(await used).toBe(1);
    stop.abort();
    expect(await limit.share(0).use(() => Promise.resolve((runs += 1)), stop.signal)).toBeNull();
    await other.of('a').end('integrated');
    await other.result;
  });
});

test('when there is to be no more, nothing starts, a retry is refused, and what runs ends in its own way', async () => {
  const noMore = new AbortController();
  const { of, working, began, result } = bench('a, b, c: a', { concurrency: 2, noMore: noMore.signal });
  await turn();
  noMore.abort(new Error('late'));
  expect(working()).toBe('a b');
  await of('b').endAgent();
  await expect(of('b').ask()).rejects.toBe(noMore.signal.reason);
  await of('b').fail(noMore.signal.reason);
  await of('a').endAgent();
  await of('a').end('integrated');
  expect([...(await result).values()]).toEqual(['integrated', 'stopped', 'waiting']);
  expect(began).toEqual(['a', 'b']);
});

/** Another engine that has `src/**` until it lets go. */
class OtherEngine implements OtherEngines {
  has: LeaseHolder | null = { spec: 's9' as LeaseHolder['spec'], issue: letter('g'), what: 'src/**' };
  readonly taken = new Set<IssueId>();
  readonly told: string[] = [];
  watching = 0;
  #changed: () => void = () => undefined;
  /** What a taker waits for. */
  gate: Promise<void> = Promise.resolve();
  /** Whether somebody looked since it took something. */
  isSeen = true;

  async take(own: IssueId, claim: Claim): Promise<LeaseHolder | null> {
    await this.gate;
    this.isSeen = true;
    const holder = this.holder(claim);
    if (holder === null) this.taken.add(own);
    return holder;
  }

  giveBack(own: IssueId): Promise<void> {
    this.taken.delete(own);
    return Promise.resolve();
  }

  holder(claim: Claim): LeaseHolder | null {
    return this.isSeen &&
      this.has !== null &&
      sharedBy(claim, claimOf({ touches: ['src/**'], resources: [] })) !== undefined
      ? this.has
      : null;
  }

  watch(changed: () => void, until: AbortSignal): Promise<void> {
    this.#changed = changed;
    this.watching += 1;
    return new Promise((resolve) => {
      until.addEventListener('abort', () => {
        this.watching -= 1;
        resolve();
      });
    });
  }

  /** Another Issue of it has the same now. */
  handOn(): void {
    if (this.has !== null) this.has = { ...this.has, issue: letter('h') };
    this.#changed();
  }

  letGo(): void {
    this.has = null;
    this.#changed();
  }

  readonly onLease = (own: IssueId, holder: LeaseHolder | null, again: boolean): void => {
    const waits = again ? 'still waits' : 'waits';
    this.told.push(holder === null ? `${own} free` : `${own} ${waits} for ${holder.spec}/${holder.issue}`);
  };
}

describe('what another engine holds', () => {
  const issue = { a: { touches: ['src/a.ts'] }, b: { touches: ['docs/**'] } };
  test('is waited for without a slot, while all else goes on, and starts when it is let go', async () => {
    const others = new OtherEngine();
    const run = bench('a, b, c', { issue, others, onLease: others.onLease, concurrency: 1 });
    await turn();
    expect(run.began).toEqual(['b']);
    expect(others.told).toEqual(['1-a waits for s9/7-g']);
    await land(run.of('b'));
    await land(run.of('c'));
    await turn();
    expect([run.began, others.watching, [...others.taken]]).toEqual([['b', 'c'], 1, []]);
    others.handOn();
    await turn();
    others.letGo();
    await turn();
    expect([run.began, others.watching]).toEqual([['b', 'c', 'a'], 0]);
    expect(others.told).toEqual(['1-a waits for s9/7-g', '1-a still waits for s9/8-h', '1-a free']);
    expect([...others.taken]).toEqual([letter('a')]);
    await land(run.of('a'));
    expect((await run.result).get(letter('a'))).toBe('integrated');
    expect(others.taken.size).toBe(0);
  });

  test('that was taken in the last moment is found when the lease is asked for', async () => {
    const others = new OtherEngine();
    others.isSeen = false;
    const run = bench('a, c', { issue, others, onLease: others.onLease, concurrency: 1 });
    await turn();
    await turn();
    expect([run.began, others.told]).toEqual([['c'], ['1-a waits for s9/7-g']]);
    run.abort.abort(new Error('stop'));
    await run.of('c').end('stopped');
    expect((await run.result).get(letter('a'))).toBe('waiting');
    expect(others.watching).toBe(0);
  });

  test('is given back when the run ends while it is being taken', async () => {
    const others = new OtherEngine();
    others.has = null;
    let open = (): void => undefined;
    others.gate = new Promise((resolve) => (open = resolve));
    const run = bench('a', { issue, others });
    run.abort.abort(new Error('stop'));
    await turn();
    open();
    expect((await run.result).get(letter('a'))).toBe('waiting');
    expect([run.began, others.taken.size]).toEqual([[], 0]);
  });

  test('does not concern an Issue that names nothing', () => {
    const others = new OtherEngine();
    expect(bench('a, b', { others }).began).toEqual(['a', 'b']);
    expect(others.taken.size).toBe(0);
  });
});
