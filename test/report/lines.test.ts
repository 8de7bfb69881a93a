import { describe, expect, test } from 'vitest';
import type { Event, EventBody, IssueFacts } from '../../src/event.js';
import { parseIssueId, parseOid, parseSpecSlug } from '../../src/issue.js';
import type { IssueId, Oid } from '../../src/issue.js';
import { lineOf } from '../../src/report/lines.js';
import type { Level } from '../../src/report/lines.js';
import { emptyState, reduce } from '../../src/state.js';

const issue = (text: string): IssueId => parseIssueId(text)!;
const oid = (digit: string): Oid => parseOid(digit.repeat(40));
const spec = parseSpecSlug('auth')!;
const store = issue('01-store');
const login = issue('02-login-page');
const pay = { spec: parseSpecSlug('pay')!, issue: issue('03-api'), what: 'src/db/**' };

const facts = (id: IssueId, more: Partial<IssueFacts> = {}): IssueFacts => ({
  id,
  title: 'A title',
  state: 'ready',
  attempts: 0,
  wave: 1,
  dependsOn: [],
  ...more,
});

const event = (body: EventBody, at = '2026-11-30T22:14:05.250Z'): Event => ({ ...body, v: 1, at, run: 'r1' });

const started = event({
  type: 'run.started',
  giro: '0.1.0',
  spec,
  title: 'Login for everyone',
  concurrency: 4,
  gateLimit: 2,
  gates: ['unit', 'lint'],
  attempts: 3,
  base: oid('a'),
  tip: null,
  folder: '.giro/runs/r1',
});
const snapshotted = event({
  type: 'spec.snapshotted',
  spec,
  base: oid('a'),
  tip: oid('b'),
  issues: [facts(store, { state: 'done' }), facts(login)],
});
const state = [started, snapshotted].reduce(reduce, emptyState);
const line = (body: EventBody, level: Level = 'normal'): string | null => lineOf(event(body), state, level);

const attempted: EventBody = {
  type: 'attempt.finished',
  issue: store,
  attempt: 1,
  result: 'committed',
  ended: { kind: 'exited', code: 0 },
  durationMs: 245_000,
  commit: oid('c'),
  files: 1,
  insertions: 40,
  deletions: 2,
};
const redGate: EventBody = {
  type: 'gate.finished',
  scope: 'issue',
  gate: 'unit',
  issue: store,
  tree: oid('d'),
  verdict: 'fail',
  cached: false,
  durationMs: 12_400,
  ended: { kind: 'exited', code: 1 },
  findings: [
    { message: 'exit code 1', gate: 'unit', file: 'src/a.ts', line: 3, detail: 'one\n\ntwo\n\u001b[31mthree' },
  ],
};

describe('a line for a person', () => {
  test('starts with the time and the aligned Issue', () => {
    expect(
      line({
        type: 'attempt.started',
        issue: store,
        attempt: 1,
        driver: 'claude',
        slot: 2,
        base: oid('a'),
        worktree: '/w',
        log: 'l',
      }),
    ).toBe('22:14:05  01-store       attempt 1 started (claude, slot 2)');
    expect(line({ type: 'issue.integrated', issue: login, commit: oid('e'), attempts: 1 })).toBe(
      '22:14:05  02-login-page  integrated as eeeeeee after 1 attempt',
    );
  });

  test('names the Spec where no Issue is meant', () => {
    expect(lineOf(started, state)).toMatchInlineSnapshot(`
      "22:14:05  auth           run started: Login for everyone (4 at once, 3 attempts each)
                               base aaaaaaa, giro 0.1.0
                               gates: unit, lint
                               logs: .giro/runs/r1"
    `);
    expect(lineOf(snapshotted, state)).toBe('22:14:05  auth           snapshot at bbbbbbb: 2 Issues, 1 done');
  });

  test('tells what an attempt came to', () => {
    expect(line(attempted)).toMatch(/attempt 1 committed as ccccccc: 1 file, \+40 -2 \(4m05s\)$/);
    expect(line({ ...attempted, result: 'failed', reason: 'no envelope' })).toMatch(/attempt 1 failed: no envelope \(/);
    expect(line({ ...attempted, result: 'operation', reason: 'rate limit' })).toMatch(
      /attempt 1 does not count: rate limit/,
    );
    expect(line({ ...attempted, result: 'stopped' })).toMatch(/attempt 1 stopped \(/);
  });

  test('shows the first lines of what a red gate printed, indented and without control codes', () => {
    expect(line(redGate)).toMatchInlineSnapshot(`
      "22:14:05  01-store       gate unit failed (12.4 s)
                               - src/a.ts:3: exit code 1
                                   one
                                   two
                                   three"
    `);
  });

  test('bounds what it shows of findings, of their detail and of one line', () => {
    const finding = {
      message: 'x'.repeat(5_000),
      detail: Array.from({ length: 5_000 }, (_, n) => `line ${n}`).join('\n'),
    };
    const text = line({ ...redGate, findings: Array.from({ length: 50 }, () => finding) }) ?? '';
    const lines = text.split('\n');
    expect(lines).toHaveLength(1 + 5 * (1 + 6 + 1) + 1);
    expect(lines.at(-1)?.trim()).toBe('- and 45 more');
    expect(text).toContain('... 4994 more lines');
    expect(Math.max(...lines.map((each) => each.length))).toBe(400);
  });

  test('does not repeat with the verdict what the gate has shown', () => {
    const judged: EventBody = { type: 'attempt.judged', issue: store, attempt: 2, verdict: 'fail', findings: [] };
    const own = { message: 'a nested repository in vendor/x' };
    expect(
      line({
        ...judged,
        findings: [
          { message: 'exit code 1', gate: 'unit' },
          { message: 'b', gate: 'lint' },
        ],
      }),
    ).toBe('22:14:05  01-store       attempt 2 is red: unit: exit code 1 (and 1 more)');
    expect(line({ ...judged, findings: [own] })?.split('\n')).toHaveLength(2);
  });

  test('asks the question of an escalation in full and says where the work lies', () => {
    const escalated: EventBody = {
      type: 'issue.escalated',
      issue: login,
      cause: 'budget-spent',
      question: 'Which cookie?\nSession or token?',
      attempts: 3,
      worktree: '/cache/w3',
    };
    expect(line(escalated)).toMatchInlineSnapshot(`
      "22:14:05  02-login-page  needs a human (budget-spent, 3 attempts): Which cookie?
                               Session or token?
                               worktree: /cache/w3"
    `);
  });

  test('ends with the last lines of the run as they are', () => {
    const lines = ['proof: 2 of 2 Issues', '', 'next: git merge giro/auth'];
    const finished: EventBody = {
      type: 'run.finished',
      spec,
      exit: 0,
      reason: 'proof',
      tip: oid('e'),
      done: 2,
      total: 2,
      gitProcesses: 90,
      lines,
    };
    expect(line(finished, 'quiet')).toBe(lines.join('\n'));
    expect(line({ ...finished, lines: ['asks: \u001b[2Jwhy?'] })).toBe('asks: \\u{1b}[2Jwhy?');
    // The error itself is on stderr.
    expect(line({ ...finished, exit: 1, reason: 'error' })).toBe(
      '22:14:05  auth           finished: error, 2 of 2 done',
    );
    expect(line({ ...finished, lines: [] })).toBe('22:14:05  auth           finished: proof, 2 of 2 done');
  });

  test('lets no control code and no second line through, whatever an agent wrote', () => {
    const text = line({ type: 'run.notice', level: 'warning', message: 'a\u001b[2J\r\nb\u202ec', issue: store });
    expect(text).toBe('22:14:05  01-store       warning: a\\u{1b}[2J⏎b\\u{202e}c');
  });
});

describe('the level', () => {
  const integrated: EventBody = { type: 'issue.integrated', issue: store, commit: oid('e'), attempts: 1 };
  const queued: EventBody = { type: 'issue.queued', issue: store };

  test('quiet keeps to what was integrated, what needs a human and the end', () => {
    expect(line(integrated, 'quiet')).not.toBeNull();
    expect(line(attempted, 'quiet')).toBeNull();
    expect(line(redGate, 'quiet')).toBeNull();
  });

  test('verbose leaves nothing out', () => {
    expect(line(queued, 'normal')).toBeNull();
    expect(line(queued, 'verbose')).toBe('22:14:05  01-store       queued for integration');
  });
});

test('every other event has its sentence', () => {
  const base = { spec, tip: oid('b') };
  const bodies: readonly EventBody[] = [
    { type: 'run.recovered', ...base, issues: [facts(store, { state: 'needs-human' })] },
    { type: 'spec.imported', ...base, files: ['docs/specs/auth/SPEC.md'] },
    { type: 'gate.started', scope: 'integration', gate: 'unit', issue: store, tree: oid('d'), log: 'l' },
    { ...redGate, scope: 'spec', issue: null, verdict: 'pass', cached: true, findings: [] },
    { type: 'attempt.judged', issue: store, attempt: 1, verdict: 'pass', findings: [] },
    { type: 'issue.retrying', issue: store, reason: 'rate limit', inMs: 30_000, failures: 2 },
    {
      type: 'gate.retrying',
      scope: 'spec',
      gate: 'accept',
      issue: null,
      reason: 'rate limit',
      inMs: 30_000,
      failures: 1,
    },
    { type: 'candidate.made', issue: store, tip: oid('b'), tree: oid('d') },
    { type: 'candidate.conflicted', issue: store, tip: oid('b'), files: ['a.ts', 'b.ts'] },
    { type: 'candidate.rejected', issue: store, tip: oid('b'), findings: [{ message: 'exit code 1', gate: 'unit' }] },
    { type: 'lane.held', issue: store, message: 'giro/auth is checked out in ../x' },
    {
      type: 'lease.refused',
      issue: store,
      holder: pay,
    },
    { type: 'lease.refused', issue: store, holder: pay, again: true },
    { type: 'lease.freed', issue: store },
    { type: 'spec.validated', ...base, verdict: 'fail', findings: [{ message: 'no test covers logout' }] },
    { type: 'spec.state', ...base, state: 'done' },
    { type: 'run.stopping', reason: 'interrupted' },
  ];
  expect(bodies.map((body) => line(body, 'verbose')?.slice(10)).join('\n')).toMatchInlineSnapshot(`
    "auth           goes on at bbbbbbb: 1 Issue, 0 done, 1 needs-human
    auth           took over edits of 1 file: docs/specs/auth/SPEC.md
    01-store       gate unit started on the merged tree
    auth           gate unit passed on the Spec (known from before)
    01-store       attempt 1 passed every gate
    01-store       retries in 30.0 s, 2 failures in a row: rate limit
    auth           gate accept is judged again in 30.0 s on the Spec, 1 failure in a row: rate limit
    01-store       candidate on bbbbbbb: tree ddddddd
    01-store       conflicts with bbbbbbb in a.ts, b.ts
    01-store       red on top of bbbbbbb: unit: exit code 1
    01-store       integration is held: giro/auth is checked out in ../x
    01-store       waits for pay/03-api, which has src/db/**
    01-store       waits for pay/03-api, which has src/db/**
    01-store       what it waited for is free
    auth           validate at bbbbbbb: fail
                             - no test covers logout
    auth           Spec is done at bbbbbbb
    auth           stopping: interrupted"
  `);
});

test('what a call took is said to those who want to know everything, with what the budgets stand at', () => {
  const charged: EventBody = {
    ...{ type: 'budget.charged', spec, issue: store, role: 'worker', driver: 'claude' },
    usage: { costUsd: 0.31, tokens: 12_300 },
    sum: { calls: 1, costUsd: 0.31, unknownCosts: 0, tokens: 12_300, unknownTokens: 0 },
    budgets: [{ key: 'run-cost', spent: 0.31, limit: 20 }],
  };
  expect(line(charged)).toBeNull();
  expect(line(charged, 'verbose')).toMatch(
    /the worker \(claude\) took \$0\.31, 12\.3k tokens; run-cost \$0\.31 of \$20\.00$/,
  );
});

test('that an Issue waits for another Spec is said once, whoever has it next', () => {
  const refused = { type: 'lease.refused', issue: store, holder: pay } as const;
  expect(line(refused)).toContain('waits for pay/03-api');
  expect(line({ ...refused, again: true })).toBeNull();
});
