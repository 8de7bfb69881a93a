import { describe, expect, test } from 'vitest';
import type { EventBody } from '../../src/event.js';
import type { Verdict, VerifyRequest } from '../../src/gates/gate.js';
import { parseSpecSlug, type IssueId, type IssueState } from '../../src/issue.js';
import type { Refusal } from '../../src/loop/budget-account.js';
import type { PlanOutcome, PlanRequest } from '../../src/loop/plan-loop.js';
import {
  runSpec,
  specGates,
  type BaselineOutcome,
  type RedRound,
  type SpecEnd,
  type SpecFinish,
  type SpecWritten,
} from '../../src/loop/spec-loop.js';
import { baselineOutcome } from '../mutations/parts.js';
import { gate, issueOf, oidOf, policyOf, verdictOf } from './rig.js';

const spec = parseSpecSlug('s1');
const written: SpecWritten = { kind: 'recorded', tip: oidOf('written') };

interface Played {
  readonly end: SpecEnd;
  readonly finishes: readonly SpecFinish[];
  readonly requests: readonly VerifyRequest[];
  readonly events: readonly EventBody[];
  /** What was planned, run and judged, in order. */
  readonly log: readonly string[];
}

async function play(
  states: Readonly<Record<string, IssueState>>,
  change: {
    readonly verdict?: () => Verdict;
    readonly finish?: () => SpecWritten;
    readonly only?: IssueId;
    readonly asked?: boolean;
    readonly stop?: 'issues' | 'gates';
    readonly gates?: Parameters<typeof policyOf>[1];
    readonly rounds?: number;
    readonly plan?: (request: PlanRequest) => PlanOutcome;
    /** Of an earlier run. */
    readonly openGap?: PlanRequest;
    readonly same?: (round: number) => boolean;
    readonly refused?: Refusal;
    readonly baseline?: BaselineOutcome;
  } = {},
): Promise<Played> {
  if (spec === undefined) throw new Error('not a name');
  const stop = new AbortController();
  const [finishes, requests, events]: [SpecFinish[], VerifyRequest[], EventBody[]] = [[], [], []];
  const log: string[] = [];
  const now = new Map(Object.entries(states).map(([id, state]) => [issueOf(id).id, state]));
  let gap = change.openGap ?? null;
  let reds = 0;
  const end = await runSpec({
    spec,
    title: 'A Spec',
    policy: policyOf({ rounds: change.rounds ?? 1 }, change.gates),
    verifier: {
      verify: (request) => {
        requests.push(request);
        log.push('validate');
        if (change.stop === 'gates') stop.abort();
        return Promise.resolve((change.verdict ?? (() => verdictOf('pass')))());
      },
    },
    budget: { refused: () => change.refused ?? null },
    signal: stop.signal,
    noMore: stop.signal,
    takeAlong: () => Promise.resolve(null),
    takeBase: () => Promise.resolve(null),
    emit: (event) => events.push(event),
    tip: () => oidOf('tip'),
    base: oidOf('base'),
    tipCode: () => Promise.resolve(oidOf(`code-${String(requests.length)}`)),
    runIssues: () => {
      log.push('run');
      if (change.stop === 'issues') stop.abort();
      return Promise.resolve();
    },
    baseline: () => {
      if (change.baseline !== undefined) log.push('base');
      return Promise.resolve(baselineOutcome(change.baseline ?? { kind: 'sound' }));
    },
    states: () => now,
    plan: (request) => {
      log.push(`plan ${String(request.round)}`);
      const outcome = (change.plan ?? (() => ({ kind: 'planned' as const })))(request);
      if (outcome.kind === 'planned') now.set(issueOf(`0${String(now.size + 1)}-gap`).id, 'done');
      if (outcome.kind === 'planned') gap = null;
      return Promise.resolve(outcome);
    },
    openGap: () => Promise.resolve(gap),
    round: (): Promise<RedRound> => Promise.resolve({ round: reds + 1, same: change.same?.(reds + 1) ?? false }),
    finish: (wanted) => {
      finishes.push(wanted);
      if (wanted.validated === 'fail') reds += 1;
      if (wanted.state === 'active') gap = { round: reds, gaps: `red ${String(reds)}` };
      return Promise.resolve((change.finish ?? (() => written))());
    },
    only: change.only ?? null,
    asked: change.asked ?? false,
    accepted: () => Promise.resolve(new Set<string>()),
    shown: (path) => path,
  });
  return { end, finishes, requests, events, log };
}

describe('the base is judged before anything is paid for', () => {
  const asks = {
    cause: 'baseline-red',
    why: 'red',
    findings: [{ message: 'gate test failed' }],
    questions: [],
  } as const;
  const red: BaselineOutcome = { kind: 'escalated', asks };

  test('and a red one ends the Spec with its evidence; no Issue is run', async () => {
    const { end, finishes, log, events } = await play({ '01-a': 'ready' }, { baseline: red });
    expect(log).toEqual(['base']);
    const question = 'gate test failed, before any work. Can you repair the base?';
    expect(end).toMatchObject({ kind: 'needs-human', asks: { cause: 'baseline-red', question } });
    expect(finishes).toMatchObject([{ state: 'needs-human', validated: null, escalation: { cause: 'baseline-red' } }]);
    expect(finishes[0]?.escalation?.packet.join('\n')).toContain('baseline = "allow"');
    expect(events.map((event) => event.type)).toEqual(['spec.state', 'spec.escalated']);
  });

  test('before a plan too', async () => {
    expect((await play({}, { baseline: red })).log).toEqual(['base']);
  });

  test('and a sound one is gone on from; a stop is a stop', async () => {
    expect((await play({ '01-a': 'in-progress' }, { baseline: { kind: 'sound' } })).log.slice(0, 2)).toEqual([
      'base',
      'run',
    ]);
    expect((await play({ '01-a': 'ready' }, { baseline: { kind: 'stopped' } })).end).toEqual({ kind: 'stopped' });
  });

  test('but not when there is nothing to work on', async () => {
    expect((await play({ '01-a': 'done', '02-b': 'wontfix' }, { baseline: red })).log).toEqual(['run', 'validate']);
    expect((await play({ '01-a': 'needs-human' }, { baseline: red })).log).toEqual(['run']);
    const only = issueOf('01-a').id;
    expect((await play({ '01-a': 'done', '02-b': 'ready' }, { baseline: red, only })).log).not.toContain('base');
  });
});

describe('a Spec whose Issues are all done or wontfix', () => {
  test('is validated on the tip; green is its proof', async () => {
    const { end, finishes, requests, events } = await play({ '01-a': 'done', '02-b': 'wontfix' });
    expect(end).toEqual({ kind: 'proof', tip: oidOf('written') });
    expect(requests).toMatchObject([{ scope: 'spec', issue: null, codeTree: oidOf('code-0') }]);
    expect(finishes).toMatchObject([{ state: 'done', validated: 'pass', code: oidOf('code-0') }]);
    expect(events.map((event) => event.type)).toEqual(['spec.validated', 'spec.state']);
  });

  test('red asks a human, with what was found', async () => {
    const { end, finishes } = await play({ '01-a': 'done' }, { verdict: () => verdictOf('fail', 'all of it is red') });
    const asks = { cause: 'rounds-spent', question: expect.stringContaining('all of it is red') as unknown };
    expect(end).toMatchObject({ kind: 'needs-human', validate: [{ message: 'all of it is red' }], asks });
    expect(finishes).toMatchObject([
      { state: 'needs-human', validated: 'fail', escalation: { cause: 'rounds-spent' } },
    ]);
  });

  test('is judged again when somebody moved the tip meanwhile, and held when that never ends', async () => {
    let writes = 0;
    const once = await play(
      { '01-a': 'done' },
      { finish: () => ((writes += 1) === 1 ? { kind: 'stale', message: 'moved' } : written) },
    );
    expect(once.end).toMatchObject({ kind: 'proof' });
    expect(once.requests.map((request) => request.codeTree)).toEqual([oidOf('code-0'), oidOf('code-1')]);
    const always = await play({ '01-a': 'done' }, { finish: () => ({ kind: 'stale', message: 'moved' }) });
    expect(always.end).toEqual({ kind: 'held', message: 'moved' });
  });

  test('is held when its end cannot be written', async () => {
    const { end, events } = await play(
      { '01-a': 'done' },
      { finish: () => ({ kind: 'held', message: 'checked out' }) },
    );
    expect(end).toEqual({ kind: 'held', message: 'checked out' });
    expect(events.map((event) => event.type)).toEqual(['spec.validated']);
  });
});

describe('a Spec that is not complete', () => {
  test.each<[string, Readonly<Record<string, IssueState>>]>([
    ['an Issue needs a human', { '01-a': 'done', '02-b': 'needs-human', '03-c': 'ready' }],
    ['an Issue is not done', { '01-a': 'done', '02-b': 'in-progress' }],
    ['nothing is done: that is no proof', { '01-a': 'wontfix' }],
  ])('%s: it asks, and is not validated', async (_name, states) => {
    const { end, finishes, requests } = await play(states);
    expect(end).toEqual({ kind: 'needs-human', validate: [], asks: null });
    expect(finishes).toMatchObject([{ state: 'needs-human', validated: null, escalation: null }]);
    expect(requests).toEqual([]);
  });
});

describe('planning', () => {
  const red = () => verdictOf('fail', 'not whole');
  const redUntil = (round: number) => {
    let asked = 0;
    return () => ((asked += 1) < round ? red() : verdictOf('pass'));
  };

  test('a Spec without Issues is planned first, then run and validated', async () => {
    const { end, log } = await play({});
    expect(end.kind).toBe('proof');
    expect(log).toEqual(['plan 0', 'run', 'validate']);
  });

  test('a Spec with Issues is not planned', async () => {
    expect((await play({ '01-a': 'done' })).log).toEqual(['run', 'validate']);
    expect((await play({ '01-a': 'ready' })).log).toEqual(['run']);
  });

  test('a red validation is recorded, its gaps are planned and run, and all is validated again', async () => {
    const { end, log, finishes } = await play({ '01-a': 'done' }, { rounds: 3, verdict: redUntil(3) });
    expect(end.kind).toBe('proof');
    expect(log).toEqual(['run', 'validate', 'plan 1', 'run', 'validate', 'plan 2', 'run', 'validate']);
    expect(finishes.map(({ state, validated }) => [state, validated])).toEqual([
      ['active', 'fail'],
      ['active', 'fail'],
      ['done', 'pass'],
    ]);
  });

  test('the planner hears what History says of the validation', async () => {
    const heard: PlanRequest[] = [];
    const plan = (request: PlanRequest): PlanOutcome => {
      heard.push(request);
      return { kind: 'planned' };
    };
    await play({ '01-a': 'done' }, { rounds: 2, verdict: redUntil(2), plan });
    expect(heard).toEqual([{ round: 1, gaps: 'red 1' }]);
  });

  test('ends when the rounds are spent: the last red one is not planned for', async () => {
    const { end, log, events } = await play({ '01-a': 'done' }, { rounds: 2, verdict: red });
    expect(end).toMatchObject({ kind: 'needs-human', asks: { cause: 'rounds-spent' } });
    expect(log).toEqual(['run', 'validate', 'plan 1', 'run', 'validate']);
    expect(events.at(-1)).toMatchObject({ type: 'spec.escalated', cause: 'rounds-spent' });
  });

  test('ends early when two rounds running find the same', async () => {
    const { end, log } = await play({ '01-a': 'done' }, { rounds: 9, verdict: red, same: (round) => round === 2 });
    expect(end).toMatchObject({ kind: 'needs-human', asks: { cause: 'same-findings' } });
    expect(log).toEqual(['run', 'validate', 'plan 1', 'run', 'validate']);
  });

  test('gates that could not run here are no gap: nobody plans for them', async () => {
    for (const cause of ['errored', 'cannot-run-here'] as const) {
      const { end, log } = await play(
        { '01-a': 'done' },
        { rounds: 3, verdict: () => verdictOf('fail', 'no docker', cause) },
      );
      expect(end).toMatchObject({ kind: 'needs-human', asks: { cause: 'cannot-run-here' } });
      expect(log).toEqual(['run', 'validate']);
    }
  });

  test('whoever asked for one Issue gets no gap Issues', async () => {
    const { end, log } = await play({ '01-a': 'done' }, { rounds: 3, verdict: red, only: issueOf('01-a').id });
    expect(end).toMatchObject({ kind: 'needs-human', asks: { cause: 'validate-red' } });
    expect(log).toEqual(['run', 'validate']);
  });

  test('a red validation that an earlier run recorded is planned for, not judged again', async () => {
    const openGap = { round: 2, gaps: 'as recorded' };
    const { log } = await play({ '01-a': 'done' }, { rounds: 3, openGap });
    expect(log).toEqual(['run', 'plan 2', 'run', 'validate']);
  });

  test('what the planner asks is what the Spec asks, with what validate found as evidence', async () => {
    const asks = { cause: 'questions' as const, why: 'the planner has questions', findings: [], questions: ['Which?'] };
    const first = await play({}, { plan: () => ({ kind: 'escalated', asks }) });
    expect(first.end).toEqual({ kind: 'needs-human', validate: [], asks: { cause: 'questions', question: 'Which?' } });
    expect(first.finishes).toMatchObject([
      { state: 'needs-human', validated: null, escalation: { cause: 'questions' } },
    ]);
    const gap = await play({ '01-a': 'done' }, { rounds: 3, verdict: red, plan: () => ({ kind: 'escalated', asks }) });
    expect(gap.end).toMatchObject({ validate: [{ message: 'not whole' }], asks: { question: 'Which?' } });
    expect(gap.finishes.at(-1)?.escalation?.packet.join('\n')).toContain('not whole');
  });

  test.each([{ kind: 'stopped' } as const, { kind: 'held', message: 'checked out' } as const])(
    'that is $kind ends the run as it is',
    async (outcome) => {
      const { end, finishes } = await play({}, { plan: () => outcome });
      expect([end, finishes]).toEqual([outcome, []]);
    },
  );
});

describe('one Issue', () => {
  const { id } = issueOf('01-a');

  test('that is done is proved by the lane’s gates on the tip; the Spec stays active', async () => {
    const { end, finishes, requests } = await play({ '01-a': 'done', '02-b': 'ready' }, { only: id });
    expect(end).toEqual({ kind: 'proof', tip: oidOf('tip') });
    expect(requests).toMatchObject([{ scope: 'integration' }]);
    expect(finishes).toEqual([]);
  });

  test('that is done leaves the Spec asking what it asked before of others, and only that', async () => {
    const others = { '01-a': 'done', '02-b': 'needs-human' } as const;
    const { end, finishes } = await play(others, { only: id, asked: true });
    expect(end).toEqual({ kind: 'proof', tip: oidOf('tip') });
    expect(finishes).toMatchObject([{ state: 'needs-human', validated: null }]);
    expect((await play(others, { only: id })).finishes).toEqual([]);
    expect((await play({ '01-a': 'done', '02-b': 'ready' }, { only: id, asked: true })).finishes).toEqual([]);
    const red = await play(others, { only: id, asked: true, verdict: () => verdictOf('fail') });
    expect(red.finishes).toEqual([]);
  });

  test('that is done by somebody’s word on a red tip is no proof', async () => {
    const { end } = await play(
      { '01-a': 'done', '02-b': 'ready' },
      { only: id, verdict: () => verdictOf('fail', 'red tip') },
    );
    expect(end).toMatchObject({ kind: 'needs-human', validate: [{ message: 'red tip' }] });
  });

  test('that is not done asks', async () => {
    expect((await play({ '01-a': 'needs-human', '02-b': 'ready' }, { only: id })).end.kind).toBe('needs-human');
  });

  test('that was the last one completes the Spec', async () => {
    expect((await play({ '01-a': 'done', '02-b': 'done' }, { only: id })).finishes).toMatchObject([{ state: 'done' }]);
  });
});

describe('a stop writes nothing', () => {
  test.each(['ready', 'done'] as const)('while Issues run, of which one is %s', async (state) => {
    for (const only of [null, issueOf('02-b').id]) {
      const { end, finishes, requests } = await play(
        { '01-a': 'done', '02-b': state },
        { stop: 'issues', ...(only === null ? {} : { only }) },
      );
      expect([end, finishes, requests]).toEqual([{ kind: 'stopped' }, [], []]);
    }
  });

  test('while gates run', async () => {
    for (const [only, state] of [
      [null, 'done'],
      [issueOf('01-a').id, 'ready'],
    ] as const) {
      const { end, finishes } = await play(
        { '01-a': 'done', '02-b': state },
        { stop: 'gates', ...(only === null ? {} : { only }) },
      );
      expect([end, finishes]).toEqual([{ kind: 'stopped' }, []]);
    }
  });
});

test('gates that were cancelled are no verdict', async () => {
  const { end } = await play({ '01-a': 'done' }, { verdict: () => verdictOf('fail', 'was stopped', 'cancelled') });
  expect(end).toEqual({ kind: 'stopped' });
});

test('without gates of its own a Spec is validated by those of the lane', () => {
  const gates = [gate('unit', ['issue']), gate('merged', ['integration']), gate('all', ['spec'])];
  expect(specGates(policyOf({}, gates)).map((one) => one.name)).toEqual(['all']);
  expect(specGates(policyOf({}, gates.slice(0, 2))).map((one) => one.name)).toEqual(['merged']);
});
