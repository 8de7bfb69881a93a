import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { IssueId } from '../../src/issue.js';
import { Leases, claimOf, sharedBy } from '../../src/scheduler/overlap.js';
import type { Claim } from '../../src/scheduler/overlap.js';
import { compareCandidates, plan, waitingFor } from '../../src/scheduler/plan.js';
import type { Candidate, Landing, PlanRequest } from '../../src/scheduler/plan.js';
import type { IssueProgress, IssueView } from '../../src/state.js';
import { letter } from './issues.js';

const nothing = claimOf({ touches: [], resources: [] });
const using = (...resources: string[]): Claim => claimOf({ touches: [], resources });

function candidate(name: string, priority: number, more: Partial<Candidate> = {}): Candidate {
  return { id: letter(name), priority, resuming: false, claim: nothing, ...more };
}

function decide(request: Partial<PlanRequest>): {
  readonly start: readonly IssueId[];
  readonly heldUntil: number | null;
} {
  const { start, heldUntil } = plan({
    free: 1,
    ready: [],
    retries: [],
    landings: [],
    leases: new Leases(),
    ...request,
  });
  return { start: start.map(({ id }) => id), heldUntil };
}

const landing = (releases: readonly Candidate[], more: Partial<Landing> = {}): Landing => ({
  claim: nothing,
  until: 1000,
  releases,
  ...more,
});

describe('order', () => {
  test('longest remaining path, then work in progress, then number', () => {
    const sorted = [
      candidate('b', 1),
      candidate('a', 1),
      candidate('d', 1, { resuming: true }),
      candidate('e', 3),
      candidate('c', 1, { resuming: true }),
    ].sort(compareCandidates);
    expect(sorted.map(({ id }) => id)).toEqual(['5-e', '3-c', '4-d', '1-a', '2-b']);
  });
});

describe('what starts', () => {
  test('as many as there are free slots, the best first', () => {
    const ready = [candidate('b', 3), candidate('a', 2), candidate('c', 1)];
    expect(decide({ free: 2, ready }).start).toEqual(['2-b', '1-a']);
    expect(decide({ free: 0, ready }).start).toEqual([]);
    expect(decide({ free: 9, ready }).start).toEqual(['2-b', '1-a', '3-c']);
  });

  test('an Issue whose lease is held is passed over and blocks nobody', () => {
    const leases = new Leases();
    leases.take(using('postgres'));
    const ready = [candidate('a', 3, { claim: using('postgres') }), candidate('b', 2), candidate('c', 1)];
    expect(decide({ ready, leases }).start).toEqual(['2-b']);
  });

  test('two that overlap do not start together, and the better one wins', () => {
    const ready = [
      candidate('b', 3, { claim: using('db') }),
      candidate('a', 2, { claim: using('db') }),
      candidate('c', 1),
    ];
    expect(decide({ free: 3, ready }).start).toEqual(['2-b', '3-c']);
  });

  test('a running Issue that waits for a slot again comes before new ones of equal or lower priority', () => {
    const ready = [candidate('a', 5), candidate('b', 3), candidate('c', 2)];
    expect(decide({ free: 1, ready, retries: [5] }).start).toEqual([]);
    expect(decide({ free: 1, ready, retries: [4] }).start).toEqual(['1-a']);
    expect(decide({ free: 2, ready, retries: [3] }).start).toEqual(['1-a']);
    expect(decide({ free: 3, ready, retries: [3, 1] }).start).toEqual(['1-a', '2-b']);
  });
});

describe('holding a slot for a landing', () => {
  const ready = [candidate('b', 2), candidate('c', 1)];

  test('for what is strictly more critical than the best that is ready', () => {
    expect(decide({ ready, landings: [landing([candidate('a', 3)])] })).toEqual({ start: [], heldUntil: 1000 });
    expect(decide({ ready, landings: [landing([candidate('a', 2)])] })).toEqual({ start: ['2-b'], heldUntil: null });
  });

  test('one slot for each Issue that is about to be released, not more', () => {
    const landings = [landing([candidate('a', 3)], { until: 800 }), landing([candidate('d', 1.5)], { until: 900 })];
    expect(decide({ free: 2, ready, landings })).toEqual({ start: ['2-b'], heldUntil: 800 });
    expect(decide({ free: 3, ready, landings })).toEqual({ start: ['2-b'], heldUntil: 800 });
    expect(decide({ free: 4, ready, landings })).toEqual({ start: ['2-b', '3-c'], heldUntil: null });
  });

  test('one slot for two of them that overlap', () => {
    const releases = [candidate('a', 3, { claim: using('db') }), candidate('d', 2.5, { claim: using('db') })];
    expect(decide({ free: 2, ready, landings: [landing(releases)] }).start).toEqual(['2-b']);
  });

  test('nothing to wait for when everything that is ready starts, or nothing is', () => {
    expect(decide({ free: 3, ready, landings: [landing([candidate('a', 3)])] }).heldUntil).toBeNull();
    expect(decide({ free: 1, ready: [], landings: [landing([candidate('a', 3)])] }).heldUntil).toBeNull();
  });

  test('not for one whose lease somebody else holds, but for one whose lease the landing gives back', () => {
    const leases = new Leases();
    const [mine, other] = [using('db'), using('db')];
    leases.take(mine);
    const released = candidate('a', 3, { claim: other });
    expect(decide({ ready, leases, landings: [landing([released], { claim: mine })] }).start).toEqual([]);
    expect(decide({ ready, leases, landings: [landing([released], { claim: using('else') })] }).start).toEqual(['2-b']);
  });

  test('its lease is kept for it too, though slots are free', () => {
    const overlapping = [candidate('b', 2, { claim: using('db') }), candidate('c', 1)];
    const landings = [landing([candidate('a', 3, { claim: using('db') })])];
    expect(decide({ free: 5, ready: overlapping, landings })).toEqual({ start: ['3-c'], heldUntil: 1000 });
  });

  test('not while running Issues wait for a slot, since they would take it', () => {
    expect(decide({ ready, retries: [1], landings: [landing([candidate('a', 3)])] }).start).toEqual(['2-b']);
  });
});

test('a plan never starts more than the free slots, nor what overlaps, and leaves no slot empty without a reason', () => {
  const claim = fc.record({ touches: fc.subarray(['src', 'src/a', 'b']), resources: fc.subarray(['db']) }).map(claimOf);
  const some = fc
    .uniqueArray(
      fc.record({ name: fc.constantFrom(...'abcdefghij'), priority: fc.integer({ min: 1, max: 5 }), claim }),
      {
        selector: ({ name }) => name,
      },
    )
    .map((list) => list.map((one) => candidate(one.name, one.priority, { claim: one.claim })).sort(compareCandidates));
  fc.assert(
    fc.property(
      some,
      fc.nat(6),
      fc.array(fc.integer({ min: 1, max: 5 }), { maxLength: 3 }),
      claim,
      some,
      (...drawn) => {
        const [ready, free, retries, held, releases] = drawn;
        const leases = new Leases();
        leases.take(held);
        const waiting = retries.sort((left, right) => right - left);
        const { start } = plan({ free, ready, retries: waiting, leases, landings: [landing(releases)] });
        const claims = [held, ...start.map((one) => one.claim)];
        claims.forEach((left, index) => {
          for (const right of claims.slice(index + 1)) expect(sharedBy(left, right)).toBeUndefined();
        });
        const worst = start.at(-1)?.priority ?? 0;
        expect(start.length).toBeLessThanOrEqual(
          Math.max(0, free - waiting.filter((priority) => priority >= worst).length),
        );
        if (start.length + retries.length >= free) return;
        // Slots stay empty: each Issue that did not start overlaps, or something more critical is expected.
        for (const left of ready.filter((one) => !start.includes(one))) {
          const isBlocked = claims.some((other) => sharedBy(other, left.claim) !== undefined);
          const isHeld = retries.length === 0 && releases.some(({ priority }) => priority > left.priority);
          expect(isBlocked || isHeld).toBe(true);
        }
      },
    ),
    { numRuns: 1000 },
  );
});

describe('what an Issue waits for', () => {
  const view = (name: string, progress: IssueProgress, dependsOn: string[] = []): [IssueId, IssueView] => [
    letter(name),
    {
      id: letter(name),
      title: name,
      wave: 1,
      dependsOn: dependsOn.map(letter),
      attempts: 0,
      startedAt: null,
      endedAt: null,
      log: null,
      progress,
    },
  ];
  const idle: IssueProgress = { kind: 'idle' };
  const working: IssueProgress = { kind: 'working', since: '', log: '', slot: 1 };
  const stuck: IssueProgress = { kind: 'needs-human', cause: null, question: '' };
  const noClaims = new Map<IssueId, Claim>();

  test('the root cause, not the next link, and whether it needs a human', () => {
    const issues = new Map([
      view('a', stuck),
      view('b', idle, ['a']),
      view('c', idle, ['b']),
      view('d', working),
      view('e', idle, ['d']),
    ]);
    expect(waitingFor(letter('c'), issues, noClaims)).toEqual({ kind: 'dependency', on: '1-a', needsHuman: true });
    expect(waitingFor(letter('e'), issues, noClaims)).toEqual({ kind: 'dependency', on: '4-d', needsHuman: false });
  });

  test('a lease names its holder and what it holds; any Issue in progress holds its leases', () => {
    const inProgress: readonly IssueProgress[] = [
      working,
      { kind: 'judging', since: '', gate: null, log: null },
      { kind: 'between', since: '', reason: '' },
      { kind: 'retrying', since: '', reason: '', inMs: 1 },
      { kind: 'integrating', since: '', step: 'queued', message: null, log: null },
    ];
    const claims = new Map([
      [letter('a'), claimOf({ touches: ['src/auth/**'], resources: [] })],
      [letter('b'), claimOf({ touches: ['src/auth/login.ts'], resources: [] })],
    ]);
    for (const progress of inProgress) {
      const issues = new Map([view('a', progress), view('b', idle)]);
      expect(waitingFor(letter('b'), issues, claims)).toEqual({ kind: 'lease', on: '1-a', name: 'src/auth/**' });
    }
    for (const progress of [
      idle,
      stuck,
      { kind: 'done', commit: null },
      { kind: 'wontfix' },
    ] satisfies IssueProgress[]) {
      expect(waitingFor(letter('b'), new Map([view('a', progress), view('b', idle)]), claims)).toEqual({
        kind: 'slot',
      });
    }
  });

  test('nothing when it is in progress, at rest or unknown', () => {
    const issues = new Map([view('a', working), view('b', stuck)]);
    expect(waitingFor(letter('a'), issues, noClaims)).toBeNull();
    expect(waitingFor(letter('b'), issues, noClaims)).toBeNull();
    expect(waitingFor(letter('z'), issues, noClaims)).toBeNull();
  });
});
