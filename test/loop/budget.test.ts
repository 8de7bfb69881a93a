import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { issueOf, budgetOf, policyOf } from './rig.js';
import { RunBudget, SpecBudget, unionMs, type Asked, type Charged, type Ticket } from '../../src/loop/budget.js';
import { decide, nothing, plus, type Account } from '../../src/loop/budget-account.js';
import type { Policy } from '../../src/policy.js';
import { unknownUsage } from '../../src/usage.js';
import { FakeClock } from '../rig/clock.js';

const signal = new AbortController().signal;
const none = { timeMs: null, tokens: null, costUsd: null };
const [first, second] = [issueOf('01-a').id, issueOf('02-b').id];

function worker(issue = first) {
  return { role: 'worker' as const, driver: 'claude', issue };
}

function ticketOf(asked: Asked): Ticket {
  if (asked.kind !== 'open') throw new Error(`not open: ${asked.kind}`);
  return asked.ticket;
}

function budget(change: Partial<Policy['budget']>, clock = new FakeClock()): SpecBudget {
  return budgetOf(change, clock);
}

async function spend(on: SpecBudget, costUsd: number | null, more: { issue?: typeof first; durationMs?: number } = {}) {
  const asked = await on.ask(worker(more.issue), signal);
  if (asked.kind === 'open') asked.ticket.close({ usage: { costUsd, tokens: null }, durationMs: more.durationMs ?? 0 });
  return asked.kind;
}

test('each call that ends tells what it took, what that comes to, and where the budgets stand', async () => {
  const told: Charged[] = [];
  const own = budgetOf(
    { issue: { ...none, costUsd: 2 }, spec: { ...none, costUsd: 5 }, run: { costUsd: 9, tokens: null } },
    new FakeClock(),
    (charged) => told.push(charged),
  );
  await spend(own, 0.3);
  await spend(own, null, { issue: second });
  expect(told[0]).toMatchObject({ issue: first, role: 'worker', driver: 'claude', usage: { costUsd: 0.3 } });
  // What nobody knows counts as the largest that was seen.
  expect(told[1]).toMatchObject({
    sum: { calls: 2, costUsd: 0.3, unknownCosts: 1 },
    budgets: [
      { key: 'run-cost', spent: 0.6, limit: 9 },
      { key: 'spec-cost', spent: 0.6, limit: 5 },
    ],
  });
  expect(own.standings(first)).toEqual([{ key: 'issue-cost', spent: 0.3, limit: 2 }]);
  const asked = await own.ask(worker(), signal);
  ticketOf(asked).close(null);
  expect(told).toHaveLength(2);
});

test('where unknown calls are not counted, a budget stands at no less than what is known', async () => {
  const money = { ...none, costUsd: 5 };
  const own = budgetOf({ issue: money, spec: money, unknownCost: 'allow' }, new FakeClock());
  await spend(own, 0.3);
  expect(own.standings(null)).toEqual([{ key: 'spec-cost', spent: 0.3, limit: 5 }]);
  await spend(own, null);
  expect(own.standings(null)).toEqual([{ key: 'spec-cost', spent: 0.3, limit: 5, atLeast: true }]);
  const run = new RunBudget({ costUsd: 5, tokens: null });
  run.settle(nothing, { amount: nothing, usage: unknownUsage });
  expect(run.budgets).toEqual([{ key: 'run-cost', spent: 0, limit: 5, atLeast: true }]);
  const later = budgetOf({ issue: money, unknownCost: 'allow' }, new FakeClock());
  const charges = [{ ...worker(), usage: unknownUsage }];
  const spells = [{ at: 0, durationMs: 1, charges }];
  later.take(first, { all: spells, current: spells, answeredAt: null });
  expect(later.standings(first)).toEqual([{ key: 'issue-cost', spent: 0, limit: 5, atLeast: true }]);
});

describe('a call is made only when it fits', () => {
  test('at what the largest of its kind took, and at the least that any is counted at', async () => {
    const own = budget({ issue: { ...none, costUsd: 1 } });
    expect(await spend(own, 0.4)).toBe('open');
    expect(await spend(own, 0.3)).toBe('open');
    const asked = await own.ask(worker(), signal);
    expect(asked).toMatchObject({ kind: 'refused', refusal: { scope: 'issue' } });
    expect(own.refusedTo(first)?.why).toBe(
      '[budget] issue-cost is reached: $0.70 of $1.00 spent, and the next call is counted at $0.40',
    );
    // Another Issue has its own, and neither Spec nor run is asked about it.
    expect(own.refused()).toBeNull();
    expect(await spend(own, 0.1, { issue: second })).toBe('open');
  });

  test('the Spec and the run hold all of their Issues together', async () => {
    const own = budget({ spec: { ...none, costUsd: 0.5 } });
    expect(await spend(own, 0.3)).toBe('open');
    expect(await spend(own, 0.3, { issue: second })).toBe('refused');
    expect(own.refused()?.scope).toBe('spec');
    const run = new RunBudget({ costUsd: 0.5, tokens: null });
    const parts = { run, clock: new FakeClock(), charged: () => undefined };
    expect(await spend(new SpecBudget(policyOf().budget, parts), 0.2)).toBe('open');
    const other = new SpecBudget(policyOf().budget, parts);
    expect(await spend(other, 0.25)).toBe('open');
    expect(await spend(other, 0.1)).toBe('refused');
    expect(other.refused()?.scope).toBe('run');
    expect(run.sum).toMatchObject({ calls: 2, costUsd: 0.45 });
  });

  test('what one Spec of the run took, the first call of the next one is counted at', async () => {
    const parts = {
      ...{ run: new RunBudget({ costUsd: 1, tokens: null }), clock: new FakeClock() },
      charged: () => undefined,
    };
    expect(await spend(new SpecBudget(policyOf().budget, parts), 0.6)).toBe('open');
    expect(await spend(new SpecBudget(policyOf().budget, parts), 0.6)).toBe('refused');
    expect(parts.run.refused).toContain('$0.60 of $1.00 spent, and the next call is counted at $0.60');
  });

  test('tokens are held like money', async () => {
    const own = budget({ run: { costUsd: null, tokens: 25_000 } });
    ticketOf(await own.ask(worker(), signal)).close({ usage: { costUsd: null, tokens: 20_000 }, durationMs: 0 });
    expect(await own.ask(worker(), signal)).toMatchObject({ kind: 'refused', refusal: { scope: 'run' } });
    expect(own.refused()?.why).toContain('run-tokens is reached: 20.0k tokens of 25.0k tokens');
  });

  test('what runs counts at its own limit: who does not fit beside it waits, and gets what it leaves', async () => {
    const own = budget({ run: { costUsd: 0.25, tokens: null } });
    const running = [ticketOf(await own.ask(worker(), signal)), ticketOf(await own.ask(worker(second), signal))];
    let third: Asked | null = null;
    const waiting = own.ask(worker(), signal).then((asked) => (third = asked));
    await Promise.resolve();
    expect(third).toBeNull();
    running[0]?.close({ usage: { costUsd: 0.02, tokens: null }, durationMs: 0 });
    expect((await waiting).kind).toBe('open');
    expect(own.refused()).toBeNull();
  });

  test('who waits is let go when the run stops, and refused when what ran took too much', async () => {
    const own = budget({ run: { costUsd: 0.15, tokens: null } });
    const running = ticketOf(await own.ask(worker(), signal));
    const stop = new AbortController();
    const stopped = own.ask(worker(), stop.signal);
    const refused = own.ask(worker(), signal);
    stop.abort();
    expect((await stopped).kind).toBe('stopped');
    running.close({ usage: { costUsd: 0.15, tokens: null }, durationMs: 0 });
    expect((await refused).kind).toBe('refused');
  });

  test('a ticket for a call that was not made costs nothing, and counts once', async () => {
    const own = budget({ issue: { ...none, costUsd: 0.1 } });
    for (let time = 0; time < 3; time += 1) ticketOf(await own.ask(worker(), signal)).close(null);
    const ticket = ticketOf(await own.ask(worker(), signal));
    ticket.close({ usage: { costUsd: 0.01, tokens: null }, durationMs: 0 });
    ticket.close(null);
    expect((await own.ask(worker(), signal)).kind).toBe('refused');
  });
});

describe('unknown is never nothing', () => {
  test('it counts as the largest that was seen', async () => {
    const own = budget({ issue: { ...none, costUsd: 1 } });
    expect(await spend(own, 0.4)).toBe('open');
    expect(await spend(own, null)).toBe('open');
    expect(await spend(own, 0.1)).toBe('refused');
  });

  test('with unknown-cost = "allow" it is made and not counted', async () => {
    const own = budget({ issue: { ...none, costUsd: 0.5 }, unknownCost: 'allow' });
    for (let time = 0; time < 20; time += 1) expect(await spend(own, null)).toBe('open');
  });
});

describe('what earlier runs spent', () => {
  const spell = (costUsd: number | null, at = 0) => ({
    at,
    durationMs: 60_000,
    charges: [{ role: 'worker' as const, driver: 'claude', usage: { ...unknownUsage, costUsd } }],
  });

  test('counts, and so does a call that was cut off', async () => {
    const own = budget({ issue: { ...none, costUsd: 1 } });
    own.take(first, { all: [spell(0.4), spell(null)], current: [spell(0.4), spell(null)], answeredAt: null });
    expect(await spend(own, 0.1)).toBe('refused');
  });

  test('does not count for an Issue that was answered, but for the Spec until that was', async () => {
    const all = [spell(0.4, 1000), spell(0.4, 2000)];
    const own = budget({ issue: { ...none, costUsd: 0.5 }, spec: { ...none, costUsd: 1 } });
    own.take(first, { all, current: [], answeredAt: 3000 });
    expect(await spend(own, 0.05)).toBe('refused');
    expect(own.refused()?.scope).toBe('spec');
    const answered = budget({ issue: { ...none, costUsd: 0.5 }, spec: { ...none, costUsd: 1 } });
    answered.take(null, { all: [], current: [], answeredAt: 2000 });
    answered.take(first, { all, current: [], answeredAt: 3000 });
    expect(await spend(answered, 0.05)).toBe('open');
  });
});

describe('time', () => {
  test('an attempt gets what is left of its Issue, then nothing is started', async () => {
    const own = budget({ issue: { ...none, timeMs: 100_000 } });
    const ticket = ticketOf(await own.ask(worker(), signal));
    expect(ticket.timeLeftMs).toBe(100_000);
    ticket.close({ usage: unknownUsage, durationMs: 70_000 });
    await own.judging(
      first,
      () => Promise.resolve(10_000),
      (ms) => ms,
    );
    const next = ticketOf(await own.ask(worker(), signal));
    expect(next.timeLeftMs).toBe(20_000);
    next.close({ usage: unknownUsage, durationMs: 20_000 });
    expect(await own.ask(worker(), signal)).toMatchObject({ kind: 'refused', refusal: { scope: 'issue' } });
  });

  test('the Spec works as long as any of its Issues does: side by side counts once, waiting does not', async () => {
    const clock = new FakeClock();
    const own = budget({ spec: { ...none, timeMs: 100_000 } }, clock);
    const both = [ticketOf(await own.ask(worker(), signal)), ticketOf(await own.ask(worker(second), signal))];
    await clock.advance(60_000);
    for (const ticket of both) ticket.close({ usage: unknownUsage, durationMs: 60_000 });
    await clock.advance(500_000);
    const next = ticketOf(await own.ask(worker(), signal));
    expect(next.timeLeftMs).toBe(40_000);
    await clock.advance(40_000);
    next.close({ usage: unknownUsage, durationMs: 40_000 });
    expect(await own.ask(worker(), signal)).toMatchObject({ kind: 'refused', refusal: { scope: 'spec' } });
  });

  test('spells that overlap count once', () => {
    expect(unionMs([])).toBe(0);
    const spells = [
      { at: 0, durationMs: 10 },
      { at: 20, durationMs: 10 },
      { at: 5, durationMs: 10 },
      { at: 6, durationMs: 1 },
    ];
    expect(unionMs(spells)).toBe(25);
  });
});

const amount = fc.record({ costUsd: fc.double({ min: 0, max: 3, noNaN: true }), tokens: fc.nat({ max: 30_000 }) });

test('as long as no call takes more than it was counted at, no budget is ever exceeded, and nobody waits for nothing', () => {
  const limits = fc.record({
    costUsd: fc.option(fc.double({ min: 0.1, max: 10, noNaN: true })),
    tokens: fc.option(fc.nat({ max: 100_000 })),
  });
  const step = fc.record({ amount, share: fc.double({ min: 0, max: 1, noNaN: true }), ends: fc.nat({ max: 3 }) });
  fc.assert(
    fc.property(limits, fc.array(step, { maxLength: 40 }), (limit, steps) => {
      let account: Account = { scope: 'run', limit, spent: nothing, reserved: nothing };
      let running: (typeof steps)[number][] = [];
      for (const one of steps) {
        const decision = decide([account], one.amount);
        if (decision.kind === 'wait') expect(running.length).toBeGreaterThan(0);
        if (decision.kind === 'open') running.push(one);
        const ended = running.slice(0, one.ends);
        running = running.slice(one.ends);
        const spent = ended.reduce(
          (sum, { amount: { costUsd, tokens }, share }) =>
            plus(sum, { costUsd: costUsd * share, tokens: Math.floor(tokens * share) }),
          account.spent,
        );
        const reserved = running.reduce((sum, other) => plus(sum, other.amount), nothing);
        account = { ...account, spent, reserved };
        const all = plus(spent, reserved);
        expect(all.costUsd).toBeLessThanOrEqual((limit.costUsd ?? Infinity) + 1e-5);
        expect(all.tokens).toBeLessThanOrEqual((limit.tokens ?? Infinity) + 1e-5);
      }
    }),
  );
});
