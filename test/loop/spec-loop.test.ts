import { describe, expect, test } from 'vitest';
import type { EventBody } from '../../src/event.js';
import type { Verdict, VerifyRequest } from '../../src/gates/gate.js';
import { parseSpecSlug, type IssueId, type IssueState } from '../../src/issue.js';
import { runSpec, specGates, type SpecEnd, type SpecFinish, type SpecWritten } from '../../src/loop/spec-loop.js';
import { gate, issueOf, oidOf, policyOf, verdictOf } from './rig.js';

const spec = parseSpecSlug('s1');
const written: SpecWritten = { kind: 'recorded', tip: oidOf('written') };

interface Played {
  readonly end: SpecEnd;
  readonly finishes: readonly SpecFinish[];
  readonly requests: readonly VerifyRequest[];
  readonly events: readonly EventBody[];
}

async function play(
  states: Readonly<Record<string, IssueState>>,
  change: {
    readonly verdict?: () => Verdict;
    readonly finish?: () => SpecWritten;
    readonly only?: IssueId;
    readonly stop?: 'issues' | 'gates';
    readonly gates?: Parameters<typeof policyOf>[1];
  } = {},
): Promise<Played> {
  if (spec === undefined) throw new Error('not a name');
  const stop = new AbortController();
  const [finishes, requests, events]: [SpecFinish[], VerifyRequest[], EventBody[]] = [[], [], []];
  const end = await runSpec({
    spec,
    policy: policyOf({}, change.gates),
    verifier: {
      verify: (request) => {
        requests.push(request);
        if (change.stop === 'gates') stop.abort();
        return Promise.resolve((change.verdict ?? (() => verdictOf('pass')))());
      },
    },
    signal: stop.signal,
    emit: (event) => events.push(event),
    tip: () => oidOf('tip'),
    base: oidOf('base'),
    tipCode: () => Promise.resolve(oidOf(`code-${String(requests.length)}`)),
    runIssues: () => {
      if (change.stop === 'issues') stop.abort();
      return Promise.resolve();
    },
    states: () => new Map(Object.entries(states).map(([id, state]) => [issueOf(id).id, state])),
    finish: (wanted) => {
      finishes.push(wanted);
      return Promise.resolve((change.finish ?? (() => written))());
    },
    only: change.only ?? null,
  });
  return { end, finishes, requests, events };
}

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
    expect(end).toMatchObject({ kind: 'needs-human', validate: [{ message: 'all of it is red' }] });
    expect(finishes).toMatchObject([{ state: 'needs-human', validated: 'fail' }]);
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
    expect(end).toEqual({ kind: 'needs-human', validate: [] });
    expect(finishes).toMatchObject([{ state: 'needs-human', validated: null }]);
    expect(requests).toEqual([]);
  });
});

describe('one Issue', () => {
  const { id } = issueOf('01-a');

  test('that is done is proved by the lane’s gates on the tip; the Spec stays active', async () => {
    const { end, finishes, requests } = await play({ '01-a': 'done', '02-b': 'ready' }, { only: id });
    expect(end).toEqual({ kind: 'proof', tip: oidOf('tip') });
    expect(requests).toMatchObject([{ scope: 'integration' }]);
    expect(finishes).toEqual([]);
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
