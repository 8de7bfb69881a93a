/**
 * The one reducer. Engine, resume and every view fold the same events, so they cannot disagree.
 *
 * | event                                  | Issue becomes                                   |
 * |----------------------------------------|--------------------------------------------------|
 * | spec.snapshotted, run.recovered, spec.planned | as its facts say                           |
 * | attempt.started                         | working                                          |
 * | attempt.finished committed              | judging                                          |
 * | attempt.finished failed, operation, stopped | between (its next attempt waits for a slot)  |
 * | attempt.judged fail, operation          | between                                          |
 * | issue.retrying, gate.retrying           | retrying                                         |
 * | attempt.judged pass, issue.queued       | integrating: queued                              |
 * | candidate.made                          | integrating: verifying                           |
 * | candidate.conflicted, candidate.rejected | between                                         |
 * | lane.held                               | integrating: held                                |
 * | lease.refused, lease.freed              | waits-for-lease, as before                       |
 * | issue.integrated                        | done                                             |
 * | issue.escalated                         | needs-human                                      |
 *
 * *waiting* and *ready* are not stored: they are computed from the graph by `issueStatus`.
 */
import type { Event, EscalationCause, IssueFacts, LeaseHolder, RunReason, SpecCause } from './event.js';
import { unreachable } from './failure.js';
import type { IssueId, Oid, SpecSlug } from './issue.js';
import { SharedMap } from './shared-map.js';
import type { SpecState } from './spec.js';
import type { SpentFacts } from './usage.js';

/** What is known of an Issue; each state carries its data. */
export type IssueProgress =
  | { readonly kind: 'idle' }
  /** It could start, but for another engine in this repository. */
  | { readonly kind: 'waits-for-lease'; readonly holder: LeaseHolder }
  | { readonly kind: 'working'; readonly since: string; readonly log: string; readonly slot: number }
  | { readonly kind: 'judging'; readonly since: string; readonly gate: string | null; readonly log: string | null }
  /** `cut`: the run was stopped while its agent was at work. */
  | { readonly kind: 'between'; readonly since: string; readonly reason: string; readonly cut?: true }
  | { readonly kind: 'retrying'; readonly since: string; readonly reason: string; readonly inMs: number }
  | {
      readonly kind: 'integrating';
      readonly since: string;
      readonly step: 'queued' | 'verifying' | 'held';
      readonly message: string | null;
      readonly log: string | null;
    }
  | { readonly kind: 'done'; readonly commit: Oid | null }
  | { readonly kind: 'needs-human'; readonly cause: EscalationCause | null; readonly question: string }
  | { readonly kind: 'wontfix' };

/** One Issue of the running state. */
export interface IssueView {
  readonly id: IssueId;
  readonly title: string;
  readonly wave: number;
  readonly dependsOn: readonly IssueId[];
  readonly attempts: number;
  /** When its first attempt of this run started; for elapsed times. */
  readonly startedAt: string | null;
  /** When it came to rest in this run. */
  readonly endedAt: string | null;
  /** Transcript of its newest attempt or gate. */
  readonly log: string | null;
  readonly progress: IssueProgress;
}

/** The running state of one Spec. */
export interface RunState {
  readonly spec: SpecSlug | null;
  readonly title: string;
  readonly run: string | null;
  readonly folder: string | null;
  readonly startedAt: string | null;
  readonly base: Oid | null;
  readonly tip: Oid | null;
  readonly concurrency: number;
  readonly specState: SpecState;
  readonly stage: 'starting' | 'planning' | 'running' | 'validating' | 'stopping' | 'finished';
  readonly stopping: string | null;
  /** What is being done for the Spec as a whole, not for one of its Issues. */
  readonly whole: WholeWork | null;
  /** What the Spec as a whole asks; `null`: it asks nothing. */
  readonly asks: { readonly cause: SpecCause; readonly question: string } | null;
  readonly issues: SharedMap<IssueId, IssueView>;
  /** What this run spent on it; `null`: no call of a model has ended. */
  readonly spent: SpentFacts | null;
  readonly notices: readonly {
    readonly level: 'info' | 'warning';
    readonly message: string;
    readonly issue: IssueId | null;
  }[];
  readonly result: {
    readonly exit: 0 | 1 | 2;
    readonly reason: RunReason;
    readonly lines: readonly string[];
    readonly at: string;
  } | null;
}

/** Work that no Issue has: its planning, and gates on its base or on all of it. */
export type WholeWork =
  | { readonly kind: 'plan'; readonly round: number; readonly driver: string; readonly log: string }
  | { readonly kind: 'waiting'; readonly what: string; readonly reason: string; readonly log: null }
  | {
      readonly kind: 'gate';
      readonly on: 'base' | 'spec';
      readonly gate: string;
      readonly driver: string | null;
      readonly log: string;
    };

/** The state before any event. */
export const emptyState: RunState = {
  spec: null,
  title: '',
  run: null,
  folder: null,
  startedAt: null,
  base: null,
  tip: null,
  concurrency: 1,
  specState: 'draft',
  stage: 'starting',
  stopping: null,
  whole: null,
  asks: null,
  issues: SharedMap.of([]),
  spent: null,
  notices: [],
  result: null,
};

/** How an Issue stands, with what only the graph tells. */
export type IssueStatus =
  | Exclude<IssueProgress, { kind: 'idle' }>
  | { readonly kind: 'ready' }
  /** `on` is the root cause, not the next link of the chain. */
  | { readonly kind: 'waiting'; readonly on: IssueId; readonly needsHuman: boolean };

/** Says whose lease an Issue waits for. */
export function waitsForLease({ spec, issue, what }: LeaseHolder): string {
  return `waits for ${spec}/${issue}, which has ${what}`;
}

/** Computes how an Issue stands: *ready* and *waiting* follow from the graph. */
export function issueStatus(issues: ReadonlyMap<IssueId, IssueView>, id: IssueId): IssueStatus {
  const view = issues.get(id);
  if (view === undefined) throw new Error(`no such Issue: ${id}`);
  if (view.progress.kind !== 'idle') return view.progress;
  const root = rootCause(issues, id);
  return root ?? { kind: 'ready' };
}

/** What a waiting Issue really waits for. */
type RootCause = { readonly kind: 'waiting'; readonly on: IssueId; readonly needsHuman: boolean };

/** Answers that were found for one state of the Issues; each map is never changed after it was made. */
const rootCauses = new WeakMap<ReadonlyMap<IssueId, IssueView>, Map<IssueId, RootCause | null>>();

/**
 * Finds the Issue that a waiting one really waits for: one that needs a human first, else the first unfinished one that
 * waits for nothing itself.
 */
export function rootCause(issues: ReadonlyMap<IssueId, IssueView>, id: IssueId): RootCause | undefined {
  const known = rootCauses.get(issues) ?? new Map<IssueId, RootCause | null>();
  rootCauses.set(issues, known);
  const path = [id];
  const onPath = new Set(path);
  for (let top = path.at(-1); top !== undefined; top = path.at(-1)) {
    const next = unfinished(issues, top).find((on) => !known.has(on) && !onPath.has(on) && !asks(issues, on));
    if (next === undefined) {
      known.set(top, causeOf(issues, known, top));
      onPath.delete(top);
      path.pop();
    } else {
      onPath.add(next);
      path.push(next);
    }
  }
  return known.get(id) ?? undefined;
}

function causeOf(
  issues: ReadonlyMap<IssueId, IssueView>,
  known: ReadonlyMap<IssueId, RootCause | null>,
  id: IssueId,
): RootCause | null {
  let first: RootCause | null = null;
  for (const on of unfinished(issues, id)) {
    if (asks(issues, on)) return { kind: 'waiting', on, needsHuman: true };
    const cause = known.get(on) ?? { kind: 'waiting', on, needsHuman: false };
    if (cause.needsHuman) return cause;
    first ??= cause;
  }
  return first;
}

function unfinished(issues: ReadonlyMap<IssueId, IssueView>, id: IssueId): readonly IssueId[] {
  return (issues.get(id)?.dependsOn ?? []).filter((on) => {
    const kind = issues.get(on)?.progress.kind;
    return kind !== undefined && kind !== 'done';
  });
}

function asks(issues: ReadonlyMap<IssueId, IssueView>, id: IssueId): boolean {
  return issues.get(id)?.progress.kind === 'needs-human';
}

/** Folds one event into the state. Never throws on an unknown Issue: late events are ignored. */
export function reduce(state: RunState, event: Event): RunState {
  switch (event.type) {
    case 'run.started':
      return {
        ...emptyState,
        spec: event.spec,
        title: event.title,
        run: event.run,
        folder: event.folder,
        startedAt: event.at,
        base: event.base,
        tip: event.tip,
        concurrency: event.concurrency,
        specState: 'active',
        stage: 'running',
      };
    case 'backlog.started':
    case 'backlog.finished':
      // Of no one Spec: see backlog.ts.
      return state;
    case 'run.notice':
      return {
        ...state,
        notices: [
          ...state.notices.slice(-99),
          { level: event.level, message: event.message, issue: event.issue ?? null },
        ],
      };
    case 'spec.snapshotted':
      return { ...state, base: event.base, tip: event.tip, issues: fromFacts(event.issues) };
    case 'run.recovered':
      return { ...state, tip: event.tip, issues: fromFacts(event.issues) };
    case 'spec.imported':
      return { ...state, tip: event.tip };
    case 'spec.plan.started': {
      const { round, driver, log } = event;
      return { ...staged(state, 'planning'), whole: { kind: 'plan', round, driver, log } };
    }
    case 'spec.planned':
      return {
        ...staged(state, 'running'),
        whole: null,
        tip: event.tip,
        issues: SharedMap.of([...state.issues, ...fromFacts(event.issues)]),
      };
    case 'spec.plan.rejected':
      return { ...state, whole: null };
    case 'spec.plan.retrying':
      return { ...state, whole: { kind: 'waiting', what: 'the plan', reason: event.reason, log: null } };
    case 'spec.escalated':
      return { ...state, whole: null, asks: { cause: event.cause, question: event.question } };
    case 'attempt.started':
      return withIssue(state, event.issue, (view) => ({
        ...view,
        attempts: event.attempt,
        startedAt: view.startedAt ?? event.at,
        log: event.log,
        progress: { kind: 'working', since: event.at, log: event.log, slot: event.slot },
      }));
    case 'attempt.finished':
      return withIssue(state, event.issue, (view) => ({
        ...view,
        progress:
          event.result === 'committed'
            ? { kind: 'judging', since: event.at, gate: null, log: null }
            : {
                ...{ kind: 'between', since: event.at, reason: event.reason ?? event.result },
                ...(event.result === 'stopped' ? { cut: true } : {}),
              },
      }));
    case 'gate.started':
    case 'gate.repeated':
      return event.issue === null
        ? atGateOfAll(state, event)
        : withIssue(state, event.issue, (view) => ({ ...view, log: event.log, progress: atGate(event) }));
    case 'gate.retrying':
      return event.issue === null
        ? { ...state, whole: { kind: 'waiting', what: `gate ${event.gate}`, reason: event.reason, log: null } }
        : withIssue(state, event.issue, (view) => waitingForJudge(view, event));
    case 'gate.finished':
      return event.issue === null && isWholeGate(state.whole, event.gate) ? { ...state, whole: null } : state;
    case 'attempt.judged':
      return withIssue(state, event.issue, (view) => ({
        ...view,
        progress:
          event.verdict === 'pass'
            ? { kind: 'integrating', since: event.at, step: 'queued', message: null, log: null }
            : { kind: 'between', since: event.at, reason: event.findings[0]?.message ?? event.verdict },
      }));
    case 'budget.charged':
      return { ...state, spent: { sum: event.sum, budgets: event.budgets } };
    case 'issue.retrying':
      return withIssue(state, event.issue, (view) => ({
        ...view,
        progress: { kind: 'retrying', since: event.at, reason: event.reason, inMs: event.inMs },
      }));
    case 'issue.queued':
      return withIssue(state, event.issue, (view) => ({
        ...view,
        startedAt: view.startedAt ?? event.at,
        progress: { kind: 'integrating', since: event.at, step: 'queued', message: null, log: null },
      }));
    case 'candidate.made':
      return withIssue(state, event.issue, (view) => ({
        ...view,
        progress: { kind: 'integrating', since: event.at, step: 'verifying', message: null, log: null },
      }));
    case 'lane.held':
      return withIssue(state, event.issue, (view) => ({
        ...view,
        progress: { kind: 'integrating', since: event.at, step: 'held', message: event.message, log: null },
      }));
    case 'lease.refused':
      return withIssue(state, event.issue, (view) => waitingForLease(view, event.holder));
    case 'lease.freed':
      return withIssue(state, event.issue, (view) =>
        view.progress.kind === 'waits-for-lease' ? { ...view, progress: { kind: 'idle' } } : view,
      );
    case 'candidate.conflicted':
      return withIssue(state, event.issue, (view) => ({
        ...view,
        progress: { kind: 'between', since: event.at, reason: `conflict in ${event.files.join(', ')}` },
      }));
    case 'candidate.rejected':
      return withIssue(state, event.issue, (view) => ({
        ...view,
        progress: { kind: 'between', since: event.at, reason: event.findings[0]?.message ?? 'red on the merged tree' },
      }));
    case 'issue.integrated':
      return withIssue({ ...state, tip: event.commit }, event.issue, (view) => ({
        ...view,
        attempts: event.attempts,
        endedAt: event.at,
        progress: { kind: 'done', commit: event.commit },
      }));
    case 'issue.escalated':
      return withIssue(state, event.issue, (view) => ({
        ...view,
        attempts: event.attempts,
        endedAt: event.at,
        progress: { kind: 'needs-human', cause: event.cause, question: event.question },
      }));
    case 'issue.answered':
      return withIssue(state, event.issue, (view) => ({
        ...view,
        endedAt: null,
        progress: event.state === 'ready' ? { kind: 'idle' } : { kind: 'wontfix' },
      }));
    case 'spec.validated':
      return staged(state, 'validating');
    case 'spec.state':
      return { ...state, specState: event.state, tip: event.tip };
    case 'run.stopping':
      return { ...state, stage: 'stopping', stopping: event.reason };
    case 'run.finished':
      return {
        ...state,
        stage: 'finished',
        tip: event.tip ?? state.tip,
        whole: null,
        result: { exit: event.exit, reason: event.reason, lines: event.lines, at: event.at },
      };
    default:
      return unreachable(event);
  }
}

/** A run that is being stopped shows that, whatever it still does. */
function staged(state: RunState, stage: RunState['stage']): RunState {
  return { ...state, stage: state.stage === 'stopping' ? 'stopping' : stage };
}

function atGate(event: GateStart): IssueProgress {
  const by = driverOf(event);
  const gate = by === null ? event.gate : `${event.gate} by ${by}`;
  const isOwn = event.scope === 'issue' || event.scope === 'base';
  if (isOwn) return { kind: 'judging', since: event.at, gate, log: event.log };
  return { kind: 'integrating', since: event.at, step: 'verifying', message: gate, log: event.log };
}

type GateStart = Extract<Event, { type: 'gate.started' | 'gate.repeated' }>;

function atGateOfAll(state: RunState, event: GateStart): RunState {
  const on = event.scope === 'spec' ? 'spec' : 'base';
  const stage = on === 'spec' && state.stage === 'running' ? 'validating' : state.stage;
  return { ...state, stage, whole: { kind: 'gate', on, gate: event.gate, driver: driverOf(event), log: event.log } };
}

/** A gate that was stopped in a pause of its judge finishes too. */
function isWholeGate(whole: WholeWork | null, gate: string): boolean {
  if (whole?.kind === 'waiting') return whole.what === `gate ${gate}`;
  return whole?.kind === 'gate' && whole.gate === gate;
}

/** Who decides the gate, when a judge does. */
function driverOf(event: GateStart): string | null {
  return event.type === 'gate.started' ? (event.driver ?? null) : null;
}

/** What is merged stays with the lane, whatever its gates wait for. */
function waitingForJudge(view: IssueView, event: Extract<Event, { type: 'gate.retrying' }>): IssueView {
  const { at: since, inMs } = event;
  const reason = `${event.gate}: ${event.reason}`;
  if (event.scope === 'issue') return { ...view, progress: { kind: 'retrying', since, reason, inMs } };
  return { ...view, progress: { kind: 'integrating', since, step: 'verifying', message: reason, log: view.log } };
}

/** Only what has not started waits for a lease. */
function waitingForLease(view: IssueView, holder: LeaseHolder): IssueView {
  const { kind } = view.progress;
  if (kind !== 'idle' && kind !== 'waits-for-lease') return view;
  return { ...view, progress: { kind: 'waits-for-lease', holder } };
}

function withIssue(state: RunState, id: IssueId, change: (view: IssueView) => IssueView): RunState {
  const view = state.issues.get(id);
  if (view === undefined) return state;
  return { ...state, issues: state.issues.with(id, change(view)) };
}

function fromFacts(facts: readonly IssueFacts[]): SharedMap<IssueId, IssueView> {
  return SharedMap.of(
    facts.map((fact) => [
      fact.id,
      {
        id: fact.id,
        title: fact.title,
        wave: fact.wave,
        dependsOn: fact.dependsOn,
        attempts: fact.attempts,
        startedAt: null,
        endedAt: null,
        log: null,
        progress: progressOf(fact),
      },
    ]),
  );
}

function progressOf(fact: IssueFacts): IssueProgress {
  switch (fact.state) {
    case 'done':
      return { kind: 'done', commit: null };
    case 'needs-human':
      return { kind: 'needs-human', cause: null, question: fact.question ?? '' };
    case 'wontfix':
      return { kind: 'wontfix' };
    case 'ready':
    case 'in-progress':
      return { kind: 'idle' };
    default:
      return unreachable(fact.state);
  }
}
