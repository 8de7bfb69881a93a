/** A run in the middle of its work: seven Issues in three waves, in mixed states. */
import type { Event, EventBody, IssueFacts } from '../../src/event.js';
import { parseIssueId, parseOid, parseSpecSlug } from '../../src/issue.js';
import type { IssueId, Oid, SpecSlug } from '../../src/issue.js';
import { emptyState, reduce } from '../../src/state.js';
import type { RunState } from '../../src/state.js';
import { initialUi } from '../../src/tui/ui.js';
import type { UiState } from '../../src/tui/ui.js';
import { frameOf } from '../../src/tui/view.js';
import type { ViewInput } from '../../src/tui/view.js';

export const issue = (text: string): IssueId => parseIssueId(text)!;
export const oid = (digit: string): Oid => parseOid(digit.repeat(40));
export const spec: SpecSlug = parseSpecSlug('auth')!;

/** Minutes after the start of the run, as events write the time. */
export const at = (minutes: number): string => new Date(Date.UTC(2026, 10, 30, 22, 0) + minutes * 60_000).toISOString();

export const event = (minutes: number, body: EventBody): Event => ({ ...body, v: 1, at: at(minutes), run: 'r1' });

export const facts = (id: string, title: string, more: Partial<IssueFacts> = {}): IssueFacts => ({
  id: issue(id),
  title,
  state: 'ready',
  attempts: 0,
  wave: 1,
  dependsOn: [],
  ...more,
});

export const started = (title = 'Login for everyone'): Event =>
  event(0, {
    type: 'run.started',
    giro: '0.1.0',
    spec,
    title,
    concurrency: 4,
    gateLimit: 2,
    gates: ['unit', 'lint'],
    attempts: 3,
    base: oid('a'),
    tip: null,
    folder: '.giro/runs/r1',
  });

export const snapshot = (issues: readonly IssueFacts[]): Event =>
  event(0, { type: 'spec.snapshotted', spec, base: oid('a'), tip: oid('b'), issues });

export const attempt = (minutes: number, id: string, number = 1): Event =>
  event(minutes, {
    type: 'attempt.started',
    issue: issue(id),
    attempt: number,
    driver: 'claude',
    slot: number,
    base: oid('b'),
    worktree: `/cache/${id}`,
    log: `.giro/runs/r1/${id}/${number}.log`,
  });

export const committed = (minutes: number, id: string, number = 1): Event =>
  event(minutes, {
    type: 'attempt.finished',
    issue: issue(id),
    attempt: number,
    result: 'committed',
    ended: { kind: 'exited', code: 0 },
    durationMs: 60_000,
    commit: oid('c'),
    files: 2,
    insertions: 10,
    deletions: 1,
  });

export const gate = (minutes: number, id: string, scope: 'issue' | 'integration' = 'issue'): Event =>
  event(minutes, {
    type: 'gate.started',
    scope,
    gate: 'unit',
    issue: issue(id),
    tree: oid('d'),
    log: `gates/${id}.log`,
  });

const mixed: readonly Event[] = [
  started(),
  snapshot([
    facts('01-store', 'Keep sessions in a store'),
    facts('02-api', 'Public API for signing in and out'),
    facts('03-login-page', 'Login page', { wave: 2, dependsOn: [issue('01-store')] }),
    facts('04-session', 'Session cookie', { wave: 2, dependsOn: [issue('01-store')] }),
    facts('05-logout', 'Logout everywhere', { wave: 2, dependsOn: [issue('02-api')] }),
    facts('06-audit', 'Audit log of every login', { wave: 3, dependsOn: [issue('05-logout')] }),
    facts('07-docs', 'Docs', { wave: 3, dependsOn: [issue('03-login-page'), issue('04-session')] }),
  ]),
  attempt(0, '01-store'),
  attempt(0, '02-api'),
  event(3, { type: 'issue.integrated', issue: issue('01-store'), commit: oid('e'), attempts: 1 }),
  attempt(3, '03-login-page'),
  attempt(3.5, '04-session'),
  attempt(9, '02-api', 3),
  event(11, {
    type: 'issue.escalated',
    issue: issue('02-api'),
    cause: 'budget-spent',
    question: 'Is a token in the URL acceptable?',
    attempts: 3,
    worktree: '/cache/02-api',
  }),
  attempt(12, '03-login-page', 2),
  committed(70, '04-session'),
  gate(70, '04-session'),
];

export const after = (events: readonly Event[]): RunState => events.reduce(reduce, emptyState);

/** Seven Issues in three waves: done, needs-human, working, judging and waiting for several reasons. */
export const mixedRun: RunState = after(mixed);

/** Titles that take another number of cells than of characters, or too many of both. */
export const wideRun: RunState = after([
  started('⏳ 修复登录'),
  snapshot([
    facts('01-glass', '⏳ 修复登录'),
    facts('02-zwj', '👩‍👩‍👧‍👦 family'),
    facts('03-mark', 'e\u0301'),
    facts('04-long', 'x'.repeat(200)),
    facts('05-cjk', '登录'.repeat(100)),
  ]),
  attempt(1, '01-glass'),
  attempt(1, '05-cjk'),
]);

const now = Date.parse(at(72));

export const input = (more: Partial<ViewInput> = {}): ViewInput => ({
  state: mixedRun,
  ui: initialUi,
  columns: 80,
  rows: 24,
  now,
  log: [],
  unicode: true,
  ...more,
});

/** A frame without colour as one text, framed so that a snapshot shows its edges. */
export const frame = (more: Partial<ViewInput> = {}): string => frameOf(input(more), false).join('\n');

export const ui = (more: Partial<UiState>): UiState => ({ ...initialUi, ...more });
