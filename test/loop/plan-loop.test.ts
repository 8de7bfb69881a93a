import { describe, expect, test } from 'vitest';
import type { EventBody } from '../../src/event.js';
import { parseSpecSlug } from '../../src/issue.js';
import {
  runPlanning,
  type PlannerCall,
  type PlannerReply,
  type PlanOutcome,
  type PlanPorts,
} from '../../src/loop/plan-loop.js';
import { Parking } from '../../src/loop/parking.js';
import { readHistory } from '../../src/store/history.js';
import { appendAnswer } from '../../src/store/history-entries.js';
import { closePlan, openPlan, planStanding } from '../../src/store/spec-history.js';
import { unknownUsage } from '../../src/usage.js';
import { draftPlan } from '../mutations/parts.js';
import { FakeClock } from '../rig/clock.js';
import { budgetOf, oidOf, policyOf } from './rig.js';

const at = '2030-01-01T00:00:00.000Z';
const spec = parseSpecSlug('s1');

type Result = PlannerReply['result'];

function planOf(...slugs: readonly string[]): Result {
  const issues = slugs.map((slug) => ({
    slug,
    title: slug,
    body: `Do ${slug}.`,
    dependsOn: [],
    touches: [],
    resources: [],
  }));
  return { kind: 'finished', envelope: { kind: 'issues', issues } };
}

function ask(...questions: readonly string[]): Result {
  return { kind: 'finished', envelope: { kind: 'questions', questions } };
}

const broken: Result = { kind: 'operation', reason: 'agent was killed by SIGKILL' };
const cycle: Result = planOf();

/** Planning with everything around it played by the test; the History is the real one. */
class PlanRig {
  history = '';
  readonly results: Result[] = [];
  readonly calls: PlannerCall[] = [];
  readonly events: EventBody[] = [];
  readonly log: string[] = [];
  readonly clock = new FakeClock();
  readonly stop = new AbortController();
  budget = budgetOf({}, this.clock);
  readonly parking = new Parking(this.clock);
  /** When the planner gets its slot. */
  turn: Promise<void> = Promise.resolve();
  held = false;
  /** Throws instead of answering, as a kill at that moment would. */
  diesAt: 'call' | 'close' | 'write' | null = null;

  run(round = 0): Promise<PlanOutcome> {
    return runPlanning(this.#ports(), { round, gaps: round === 0 ? '' : 'red' });
  }

  #ports(): PlanPorts {
    if (spec === undefined) throw new Error('not a name');
    const tip = oidOf('tip');
    const heldOr = <T extends object>(more: T) =>
      this.held ? { kind: 'held' as const, message: 'checked out' } : { kind: 'recorded' as const, tip, ...more };
    return {
      spec,
      budget: policyOf({ failures: 2 }).budget,
      spending: this.budget,
      driver: 'claude',
      record: {
        standing: () => Promise.resolve(planStanding(readHistory(this.history))),
        open: ({ driver, round }) => {
          if (!this.held) this.history = openPlan(this.history, { at, driver, base: tip, round });
          this.log.push('open');
          return Promise.resolve(heldOr({ plan: planStanding(readHistory(this.history)).last }));
        },
        close: (closing) => {
          if (this.diesAt === 'close') throw new Error('killed');
          this.history = closePlan(this.history, { ...closing, planned: [] });
          this.log.push(`close ${closing.verdict}`);
          return Promise.resolve(heldOr({}));
        },
        write: ({ spent, issues }) => {
          if (this.diesAt === 'write') throw new Error('killed');
          this.history = closePlan(this.history, {
            verdict: 'pass',
            spent,
            findings: [],
            questions: [],
            planned: issues,
          });
          this.log.push(`write ${issues.map((issue) => issue.id).join(' ')}`);
          return Promise.resolve(heldOr({ facts: [] }));
        },
      },
      call: (call) => {
        this.calls.push(call);
        this.log.push('call');
        if (this.diesAt === 'call') throw new Error('killed');
        const result = this.results.shift() ?? planOf('a');
        return Promise.resolve({ result, durationMs: 1000, tail: 'the last lines', usage: unknownUsage });
      },
      draft: (texts, round) =>
        Promise.resolve(draftPlan(texts, { issues: [], taken: [], gap: round === 0 ? null : round })),
      logFile: (plan) => `/logs/plan.${String(plan)}.log`,
      clock: this.clock,
      noMore: this.stop.signal,
      parking: this.parking,
      inSlot: async (run) => {
        this.log.push('slot');
        await this.turn;
        return this.stop.signal.aborted ? null : run().finally(() => this.log.push('free'));
      },
      emit: (event) => this.events.push(event),
      jitter: () => 0.5,
    };
  }
}

test('a plan is recorded before its planner starts, and written with its Issues', async () => {
  const rig = new PlanRig();
  rig.results.push(planOf('store', 'api'));
  expect(await rig.run()).toEqual({ kind: 'planned' });
  expect(rig.log).toEqual(['slot', 'open', 'call', 'write 01-store 02-api', 'free']);
  expect(rig.events.map((event) => event.type)).toEqual(['spec.plan.started', 'spec.planned']);
  expect(rig.history).toMatch(/^### Plan 1 · 2030-01-01T00:00:00Z · claude\nbase \w+ · round 0 · .* · 2 Issues\n/m);
});

describe('what cannot be a plan', () => {
  test('goes back once, with the reasons', async () => {
    const rig = new PlanRig();
    rig.results.push(cycle, planOf('a'));
    expect((await rig.run()).kind).toBe('planned');
    expect(rig.calls.map((call) => call.standing.rejected.map(({ message }) => message))).toEqual([
      [],
      ['the plan has no Issue'],
    ]);
    expect(rig.calls).toHaveLength(2);
    expect(rig.log.filter((line) => line.startsWith('close'))).toEqual(['close fail']);
  });

  test('is not asked for a third time', async () => {
    const rig = new PlanRig();
    rig.results.push(cycle, cycle, planOf('a'));
    expect(await rig.run()).toMatchObject({
      kind: 'escalated',
      asks: { cause: 'plan-rejected', findings: [{ message: 'the plan has no Issue' }] },
    });
    expect(rig.calls).toHaveLength(2);
    expect(rig.events.filter((event) => event.type === 'spec.plan.rejected')).toHaveLength(2);
  });

  test('and an envelope that cannot be read get one fresh call', async () => {
    const rig = new PlanRig();
    rig.results.push({ kind: 'failed', reason: 'no envelope' }, planOf('a'));
    expect((await rig.run()).kind).toBe('planned');
    const twice = new PlanRig();
    twice.results.push({ kind: 'failed', reason: 'no envelope' }, { kind: 'failed', reason: 'no envelope' });
    expect(await twice.run()).toMatchObject({ kind: 'escalated', asks: { cause: 'plan-rejected' } });
    expect(twice.calls).toHaveLength(2);
  });

  test('and what cannot be read count apart: a plan that is refused still goes back', async () => {
    const rig = new PlanRig();
    rig.results.push({ kind: 'failed', reason: 'no envelope' }, cycle, planOf('a'));
    expect((await rig.run()).kind).toBe('planned');
    const other = new PlanRig();
    other.results.push(cycle, { kind: 'failed', reason: 'no envelope' }, cycle, planOf('a'));
    expect(await other.run()).toMatchObject({ kind: 'escalated', asks: { why: '3 plans were not taken' } });
    expect(other.calls[2]?.standing.rejected.map(({ message }) => message)).toEqual([
      'the plan has no Issue',
      'no envelope',
    ]);
  });

  test('an answer gives the plans back, and is heard with the question', async () => {
    const rig = new PlanRig();
    rig.results.push(ask('Which database?', 'Which port?'));
    expect(await rig.run()).toMatchObject({
      kind: 'escalated',
      asks: { cause: 'questions', questions: ['Which database?', 'Which port?'] },
    });
    rig.history = appendAnswer(rig.history, { at, how: 'Postgres, on 5432.' });
    expect((await rig.run()).kind).toBe('planned');
    expect(rig.calls[1]?.standing.answers).toMatch(/Which database\?[^]*Postgres, on 5432\./);
  });
});

describe('what is no fault of the plan', () => {
  test('is tried again after a pause, and counts as no plan', async () => {
    const rig = new PlanRig();
    rig.results.push(broken, cycle, planOf('a'));
    const ended = rig.run();
    await rig.clock.waiting();
    await rig.clock.advance(60_000);
    expect((await ended).kind).toBe('planned');
    expect(rig.log.filter((line) => line.startsWith('close'))).toEqual(['close operation', 'close fail']);
    expect(rig.events).toContainEqual(expect.objectContaining({ type: 'spec.plan.retrying', inMs: 1000, failures: 1 }));
  });

  test('asks after so many in a row', async () => {
    const rig = new PlanRig();
    rig.results.push(broken, broken);
    const ended = rig.run();
    await rig.clock.waiting();
    await rig.clock.advance(60_000);
    expect(await ended).toMatchObject({
      kind: 'escalated',
      asks: { cause: 'operation-failures', findings: [{ message: 'agent was killed by SIGKILL' }] },
    });
  });

  test('a usage limit parks all agents until its reset, and the planner waits for theirs', async () => {
    const rig = new PlanRig();
    const until = new Date(rig.clock.now() + 3_600_000).toISOString();
    rig.results.push({ kind: 'usage-limit', reason: 'usage limit', until }, planOf('a'));
    const ended = rig.run();
    await rig.clock.waiting();
    expect(rig.parking.isClosed).toBe(true);
    expect(rig.events).toContainEqual(
      expect.objectContaining({ type: 'run.notice', message: `usage limit; no agent is started before ${until}` }),
    );
    // Somebody else ran into a later one meanwhile.
    rig.parking.park(2 * 3_600_000);
    await rig.clock.advance(3_600_000);
    await rig.clock.waiting();
    expect(rig.calls).toHaveLength(1);
    await rig.clock.advance(3_600_000);
    expect((await ended).kind).toBe('planned');
    expect(planStanding(readHistory(rig.history))).toMatchObject({ last: 2, refused: 0, unread: 0 });
  });

  test('who waits for a slot has begun nothing: no plan is recorded, no budget is asked', async () => {
    const rig = new PlanRig();
    let free: () => void = () => undefined;
    rig.turn = new Promise((resolve) => (free = resolve));
    const ended = rig.run();
    await Promise.resolve();
    expect([rig.history, rig.events]).toEqual(['', []]);
    rig.stop.abort();
    free();
    expect(await ended).toEqual({ kind: 'stopped' });
    expect(rig.log).toEqual(['slot']);
  });

  test('a stop gives the plan back', async () => {
    const rig = new PlanRig();
    rig.results.push({ kind: 'stopped' });
    expect(await rig.run()).toEqual({ kind: 'stopped' });
    expect(planStanding(readHistory(rig.history))).toMatchObject({ last: 1, refused: 0, unread: 0 });
    rig.stop.abort();
    expect(await rig.run()).toEqual({ kind: 'stopped' });
    expect(rig.calls).toHaveLength(1);
  });

  test('a branch that is checked out holds it before anything is paid', async () => {
    const rig = new PlanRig();
    rig.held = true;
    expect(await rig.run()).toEqual({ kind: 'held', message: 'checked out' });
    expect(rig.calls).toEqual([]);
  });
});

describe('killed at any instant', () => {
  test.each(['call', 'close', 'write'] as const)('at the %s: the plan counts, and one more is tried', async (where) => {
    const rig = new PlanRig();
    rig.results.push(where === 'close' ? cycle : planOf('a'));
    rig.diesAt = where;
    await expect(rig.run()).rejects.toThrow('killed');
    rig.diesAt = null;
    expect(planStanding(readHistory(rig.history))).toMatchObject({ last: 1, refused: 0, cutOff: 1 });
    expect((await rig.run()).kind).toBe('planned');
    expect(rig.history.match(/^### Plan \d/gm)).toEqual(['### Plan 1', '### Plan 2']);
  });

  test('as often as attempts are allowed: a human is asked why, and nothing more is paid', async () => {
    const rig = new PlanRig();
    rig.diesAt = 'call';
    for (let time = 0; time < 3; time += 1) await expect(rig.run()).rejects.toThrow('killed');
    const findings = [{ message: 'giro ended 3 times while its planner worked' }];
    expect(await rig.run()).toMatchObject({ kind: 'escalated', asks: { cause: 'plan-rejected', findings } });
    expect(rig.calls).toHaveLength(3);
  });

  test('between questions and their packet: the same is asked without paying again', async () => {
    const rig = new PlanRig();
    rig.results.push(ask('Which?'));
    await rig.run();
    expect(await rig.run()).toMatchObject({ asks: { questions: ['Which?'] } });
    expect(rig.calls).toHaveLength(1);
  });
});
