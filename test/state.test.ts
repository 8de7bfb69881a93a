import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Event, EventBody, IssueFacts } from '../src/event.js';
import { parseIssueId, parseOid, parseSpecSlug, type IssueId, type IssueState } from '../src/issue.js';
import { emptyState, issueStatus, reduce, rootCause, type RunState } from '../src/state.js';

const oid = parseOid('a'.repeat(40));
const spec = parseSpecSlug('s1') ?? fail();
const ended = { kind: 'exited', code: 0 } as const;

function fail(): never {
  throw new Error('not a name');
}

function id(text: string): IssueId {
  return parseIssueId(text) ?? fail();
}

function fact(name: string, state: IssueState = 'ready', dependsOn: readonly string[] = []): IssueFacts {
  return { id: id(name), title: name, state, attempts: 0, wave: 1, dependsOn: dependsOn.map(id) };
}

function after(facts: readonly IssueFacts[], ...bodies: readonly EventBody[]): RunState {
  const start: EventBody = { type: 'spec.snapshotted', spec, base: oid, tip: oid, issues: facts };
  return [start, ...bodies].reduce((state, body, index) => reduce(state, eventOf(body, index)), emptyState);
}

function eventOf(body: EventBody, index = 0): Event {
  return { v: 1, at: new Date(Date.UTC(2030, 0, 1, 0, 0, index)).toISOString(), run: 'run-1', ...body };
}

const one = id('01-a');
const holder = { spec, issue: id('07-x'), what: 'src/**' };
const started = (attempt: number): EventBody => ({
  type: 'attempt.started',
  issue: one,
  attempt,
  driver: 'claude',
  slot: 1,
  base: oid,
  worktree: '/w',
  log: '/log',
});
const finished = (result: 'committed' | 'failed' | 'operation' | 'stopped'): EventBody => ({
  type: 'attempt.finished',
  issue: one,
  attempt: 1,
  result,
  ended,
  durationMs: 1,
  commit: null,
  files: 0,
  insertions: 0,
  deletions: 0,
});
const judged = (verdict: 'pass' | 'fail' | 'operation'): EventBody => ({
  type: 'attempt.judged',
  issue: one,
  attempt: 1,
  verdict,
  findings: [{ message: 'red' }],
});
const gate = (scope: 'issue' | 'integration' | 'spec'): EventBody => ({
  type: 'gate.started',
  scope,
  gate: 'test',
  issue: scope === 'spec' ? null : one,
  tree: oid,
  log: '/gate',
});

describe('the table above reduce', () => {
  test.each<[string, EventBody, object]>([
    ['attempt.started', started(1), { kind: 'working', slot: 1, log: '/log' }],
    ['attempt.finished committed', finished('committed'), { kind: 'judging', gate: null }],
    ['attempt.finished failed', finished('failed'), { kind: 'between' }],
    ['attempt.finished operation', finished('operation'), { kind: 'between' }],
    ['attempt.finished stopped', finished('stopped'), { kind: 'between' }],
    ['gate.started of the Issue', gate('issue'), { kind: 'judging', gate: 'test', log: '/gate' }],
    ['gate.started of the lane', gate('integration'), { kind: 'integrating', step: 'verifying', message: 'test' }],
    ['attempt.judged pass', judged('pass'), { kind: 'integrating', step: 'queued' }],
    ['attempt.judged fail', judged('fail'), { kind: 'between', reason: 'red' }],
    ['attempt.judged operation', judged('operation'), { kind: 'between' }],
    [
      'issue.retrying',
      { type: 'issue.retrying', issue: one, reason: 'network', inMs: 5, failures: 1 },
      { kind: 'retrying', inMs: 5 },
    ],
    [
      'gate.retrying of the Issue',
      { type: 'gate.retrying', scope: 'issue', gate: 'review', issue: one, reason: 'network', inMs: 5, failures: 1 },
      { kind: 'retrying', inMs: 5, reason: 'review: network' },
    ],
    [
      'gate.retrying of the lane',
      { type: 'gate.retrying', scope: 'integration', gate: 'review', issue: one, reason: 'x', inMs: 5, failures: 1 },
      { kind: 'integrating', step: 'verifying', message: 'review: x' },
    ],
    ['issue.queued', { type: 'issue.queued', issue: one }, { kind: 'integrating', step: 'queued' }],
    [
      'candidate.made',
      { type: 'candidate.made', issue: one, tip: oid, tree: oid },
      { kind: 'integrating', step: 'verifying' },
    ],
    [
      'candidate.conflicted',
      { type: 'candidate.conflicted', issue: one, tip: oid, files: ['a', 'b'] },
      { kind: 'between', reason: 'conflict in a, b' },
    ],
    ['candidate.rejected', { type: 'candidate.rejected', issue: one, tip: oid, findings: [] }, { kind: 'between' }],
    [
      'lane.held',
      { type: 'lane.held', issue: one, message: 'wait' },
      { kind: 'integrating', step: 'held', message: 'wait' },
    ],
    ['lease.refused', { type: 'lease.refused', issue: one, holder }, { kind: 'waits-for-lease', holder }],
    [
      'issue.integrated',
      { type: 'issue.integrated', issue: one, commit: oid, attempts: 2 },
      { kind: 'done', commit: oid },
    ],
    [
      'issue.escalated',
      { type: 'issue.escalated', issue: one, cause: 'blocked', question: 'which?', attempts: 2, worktree: null },
      { kind: 'needs-human', cause: 'blocked', question: 'which?' },
    ],
  ])('%s', (_name, body, progress) => {
    const state = after([fact('01-a'), fact('02-b')], body);
    expect(state.issues.get(one)?.progress).toMatchObject(progress);
    expect(state.issues.get(id('02-b'))?.progress).toEqual({ kind: 'idle' });
  });

  test('only what has not started waits for a lease, and is as before when that is free', () => {
    const refused: EventBody = { type: 'lease.refused', issue: one, holder };
    const of = (...bodies: EventBody[]) => after([fact('01-a')], ...bodies).issues.get(one)?.progress;
    expect(of(refused, { type: 'lease.freed', issue: one })).toEqual({ kind: 'idle' });
    expect(of(refused, started(1))).toMatchObject({ kind: 'working' });
    expect(of(started(1), refused)).toMatchObject({ kind: 'working' });
    expect(of(started(1), { type: 'lease.freed', issue: one })).toMatchObject({ kind: 'working' });
  });

  test('facts give the states that only git knows', () => {
    const state = after([
      fact('01-a', 'done'),
      { ...fact('02-b', 'needs-human'), question: 'which?' },
      fact('03-c', 'wontfix'),
      fact('04-d', 'in-progress'),
    ]);
    expect([...state.issues.values()].map((view) => view.progress)).toEqual([
      { kind: 'done', commit: null },
      { kind: 'needs-human', cause: null, question: 'which?' },
      { kind: 'wontfix' },
      { kind: 'idle' },
    ]);
  });

  test('the stage of a run', () => {
    expect(after([], gate('issue')).stage).toBe('starting');
    const run: EventBody = {
      type: 'run.started',
      giro: '1',
      spec,
      title: 't',
      concurrency: 2,
      gateLimit: 2,
      gates: [],
      attempts: 2,
      base: oid,
      tip: null,
      folder: '/f',
    };
    expect(after([], run).stage).toBe('running');
    expect(after([], run, gate('spec')).stage).toBe('validating');
    expect(after([], run, { type: 'run.stopping', reason: 'SIGINT' }, gate('spec')).stage).toBe('stopping');
  });
});

describe('how an Issue stands', () => {
  const chain = [
    fact('01-a'),
    fact('02-b', 'ready', ['01-a']),
    fact('03-c', 'ready', ['02-b']),
    fact('04-d', 'ready', ['03-c']),
  ];

  test('ready, or waiting for what is deepest', () => {
    const { issues } = after(chain, started(1));
    expect(issueStatus(issues, one)).toMatchObject({ kind: 'working' });
    expect(issueStatus(issues, id('04-d'))).toEqual({ kind: 'waiting', on: '01-a', needsHuman: false });
    expect(issueStatus(after(chain).issues, one)).toEqual({ kind: 'ready' });
  });

  test('the root cause is who needs a human, not the next link, and comes before who merely works', () => {
    const facts = [
      fact('01-a', 'needs-human'),
      fact('02-b', 'ready', ['01-a']),
      fact('03-c'),
      fact('04-d', 'ready', ['03-c', '02-b']),
      fact('05-e', 'done'),
      fact('06-f', 'ready', ['05-e']),
    ];
    const { issues } = after(facts);
    expect(rootCause(issues, id('04-d'))).toEqual({ kind: 'waiting', on: '01-a', needsHuman: true });
    expect(rootCause(issues, id('06-f'))).toBeUndefined();
    expect(rootCause(issues, id('03-c'))).toBeUndefined();
  });

  test('a dependency that is done hides what lies behind it', () => {
    const { issues } = after([
      fact('01-a', 'needs-human'),
      fact('02-b', 'done', ['01-a']),
      fact('03-c', 'ready', ['02-b']),
    ]);
    expect(issueStatus(issues, id('03-c'))).toEqual({ kind: 'ready' });
  });

  test('an Issue that is not there is a bug', () => {
    expect(() => issueStatus(new Map(), one)).toThrow('01-a');
  });
});

describe('whatever comes, in whatever order', () => {
  const names = fc.constantFrom('01-a', '02-b', '03-c', '99-unknown').map(id);
  const issueEvent = (body: EventBody): fc.Arbitrary<EventBody> =>
    names.map((issue) => ({ ...body, issue }) as EventBody);
  const state = fc.constantFrom<IssueState>('ready', 'in-progress', 'done', 'needs-human', 'wontfix');
  const facts = fc.array(
    fc.record({
      id: names,
      title: fc.string(),
      state,
      attempts: fc.nat(9),
      wave: fc.nat(3),
      dependsOn: fc.array(names, { maxLength: 3 }),
    }),
    { maxLength: 4 },
  );
  const body: fc.Arbitrary<EventBody> = fc.oneof(
    facts.map((issues): EventBody => ({ type: 'run.recovered', spec, tip: oid, issues })),
    facts.map((issues): EventBody => ({ type: 'spec.snapshotted', spec, base: oid, tip: oid, issues })),
    ...[
      started(1),
      finished('committed'),
      finished('failed'),
      gate('issue'),
      gate('integration'),
      judged('pass'),
      judged('fail'),
    ].map(issueEvent),
    ...(
      [
        { type: 'issue.retrying', issue: one, reason: 'x', inMs: 1, failures: 1 },
        { type: 'issue.queued', issue: one },
        { type: 'candidate.made', issue: one, tip: oid, tree: oid },
        { type: 'candidate.conflicted', issue: one, tip: oid, files: [] },
        { type: 'candidate.rejected', issue: one, tip: oid, findings: [] },
        { type: 'lane.held', issue: one, message: 'x' },
        { type: 'lease.refused', issue: one, holder },
        { type: 'lease.freed', issue: one },
        { type: 'issue.integrated', issue: one, commit: oid, attempts: 1 },
        { type: 'issue.escalated', issue: one, cause: 'blocked', question: 'x', attempts: 1, worktree: null },
      ] satisfies readonly EventBody[]
    ).map(issueEvent),
    fc.constantFrom<EventBody>(
      gate('spec'),
      { type: 'run.notice', level: 'info', message: 'x' },
      { type: 'spec.imported', spec, tip: oid, files: [] },
      { type: 'spec.validated', spec, tip: oid, verdict: 'fail', findings: [] },
      { type: 'spec.state', spec, state: 'done', tip: oid },
      { type: 'run.stopping', reason: 'x' },
      {
        type: 'run.finished',
        spec,
        exit: 0,
        reason: 'proof',
        tip: null,
        done: 0,
        total: 0,
        gitProcesses: 0,
        lines: [],
      },
    ),
  );

  test('reduce never throws, nor does asking how an Issue stands', () => {
    fc.assert(
      fc.property(fc.array(body, { maxLength: 30 }), (bodies) => {
        let current = emptyState;
        for (const [index, next] of bodies.entries()) {
          const before = current;
          current = reduce(current, eventOf(next, index));
          expect(before.issues).not.toBe(undefined);
          for (const issue of current.issues.keys())
            expect(issueStatus(current.issues, issue).kind).toBeTypeOf('string');
        }
      }),
      { numRuns: 300 },
    );
  });

  test('an event of an unknown Issue changes nothing', () => {
    const before = after([fact('01-a')]);
    expect(reduce(before, eventOf({ ...started(1), issue: id('99-x') } as EventBody)).issues).toBe(before.issues);
  });

  test('notices do not pile up without end', () => {
    const many = Array.from({ length: 300 }, (_, index): EventBody => ({
      type: 'run.notice',
      level: 'info',
      message: String(index),
    }));
    const { notices } = after([], ...many);
    expect(notices).toHaveLength(100);
    expect(notices.at(-1)?.message).toBe('299');
  });
});

describe('planning', () => {
  const planning: EventBody = { type: 'spec.plan.started', spec, round: 0, plan: 1, driver: 'claude', log: '/log' };

  test('shows as a stage, and adds its Issues to those that there are', () => {
    expect(after([], planning)).toMatchObject({ stage: 'planning' });
    const integrated: EventBody = { type: 'issue.integrated', issue: one, commit: oid, attempts: 1 };
    const planned: EventBody = {
      type: 'spec.planned',
      spec,
      round: 1,
      tip: parseOid('b'.repeat(40)),
      issues: [fact('02-b', 'ready', ['01-a'])],
    };
    const state = after([fact('01-a')], integrated, planning, planned);
    expect(state).toMatchObject({ stage: 'running', tip: parseOid('b'.repeat(40)) });
    expect([...state.issues.keys()]).toEqual(['01-a', '02-b']);
    expect(issueStatus(state.issues, one).kind).toBe('done');
    expect(issueStatus(state.issues, id('02-b')).kind).toBe('ready');
  });

  test('does not hide that the run is stopping', () => {
    const stopping: EventBody = { type: 'run.stopping', reason: 'SIGINT' };
    expect(after([], stopping, planning).stage).toBe('stopping');
  });

  test('that asks is kept', () => {
    const asked: EventBody = { type: 'spec.escalated', spec, cause: 'questions', question: 'Which?', findings: [] };
    expect(after([], planning, asked).asks).toEqual({ cause: 'questions', question: 'Which?' });
  });
});
