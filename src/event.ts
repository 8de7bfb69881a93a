/** Everything that happens in a run, as one closed union. `docs/events.md` lists them for readers of NDJSON. */
import type { Evidence, Finding, IssueId, IssueState, Oid, Phase, SpecSlug, Waived } from './issue.js';
import type { RunScope } from './policy.js';
import type { SpecState } from './spec.js';
import type { BudgetStanding, Charge, Spending, Usage } from './usage.js';

/** How a process ended: exactly one of these; the first reason wins. */
export type Ended =
  | { readonly kind: 'exited'; readonly code: number }
  | { readonly kind: 'signalled'; readonly signal: string }
  | { readonly kind: 'timed-out'; readonly limitMs: number }
  | { readonly kind: 'stalled'; readonly reason: string }
  | { readonly kind: 'cancelled'; readonly reason: string }
  | { readonly kind: 'could-not-start'; readonly reason: string };

/** Why an Issue was handed to a human. */
export type EscalationCause =
  'budget-spent' | 'no-progress' | 'operation-failures' | 'blocked' | 'cannot-run-here' | 'lane-held';

/** Why a Spec as a whole was handed to a human. */
export type SpecCause =
  | 'plan-rejected'
  | 'questions'
  | 'rounds-spent'
  | 'same-findings'
  | 'baseline-red'
  | 'validate-red'
  | 'budget-spent'
  | 'cannot-run-here'
  | 'operation-failures'
  /** What it depends on does not merge, or is red together. */
  | 'stack-conflict'
  | 'stack-red'
  /** What moved on the person's branch does not merge, or is red together. */
  | 'base-conflict'
  | 'base-red';

/** How an Issue looks when a run starts or is recovered. */
export interface IssueFacts {
  readonly id: IssueId;
  readonly title: string;
  readonly state: IssueState;
  readonly phase?: Phase;
  /** Attempts recorded in History so far. */
  readonly attempts: number;
  readonly wave: number;
  readonly dependsOn: readonly IssueId[];
  /** The question of its packet; only when it needs a human. */
  readonly question?: string;
  /** What its workers and judges took so far; absent: none was called. */
  readonly spending?: Spending;
}

/** Who holds a lease that another Issue waits for. */
export interface LeaseHolder {
  readonly spec: SpecSlug;
  readonly issue: IssueId;
  /** The glob or resource, as the holder names it. */
  readonly what: string;
}

/** What a finished run says of itself. */
export type RunReason = 'proof' | 'needs-human' | 'stopped' | 'error';

/** What stops a run before its end. */
export type StopCause = 'signal' | 'deadline' | 'stop-command' | 'stop-file';

/** One Spec of a backlog, when the night begins; in the order in which they may start. */
export interface BacklogItem {
  readonly spec: SpecSlug;
  readonly title: string;
  readonly value: number | null;
  readonly dependsOn: readonly SpecSlug[];
  /** `asking`: it asked a person, and nobody answered; `wrong`: its files are. */
  readonly plan: 'run' | 'proved' | 'asking' | 'wrong';
  /** One line: why, or what it waits for. */
  readonly why: string;
}

/** How one Spec of a backlog ended. */
export interface BacklogResult {
  readonly spec: SpecSlug;
  readonly result: 'proved' | 'needs-human' | 'unfinished' | 'not-started' | 'failed';
  /** One line: what is asked, what it waits for, what is wrong. */
  readonly why: string;
}

export type EventBody =
  | {
      readonly type: 'backlog.started';
      readonly giro: string;
      readonly concurrency: number;
      readonly gateLimit: number;
      /** When the run is to end; `null`: it has the time it needs. */
      readonly until: string | null;
      readonly folder: string;
      readonly specs: readonly BacklogItem[];
    }
  | {
      readonly type: 'backlog.finished';
      readonly exit: 0 | 1 | 2;
      readonly reason: RunReason;
      readonly specs: readonly BacklogResult[];
      readonly gitProcesses: number;
      /** Last lines for a person. */
      readonly lines: readonly string[];
    }
  | {
      readonly type: 'run.started';
      readonly giro: string;
      readonly spec: SpecSlug;
      readonly title: string;
      readonly concurrency: number;
      readonly gateLimit: number;
      readonly gates: readonly string[];
      readonly attempts: number;
      readonly base: Oid;
      readonly tip: Oid | null;
      readonly folder: string;
    }
  | {
      readonly type: 'run.notice';
      readonly level: 'info' | 'warning';
      readonly message: string;
      readonly issue?: IssueId;
    }
  | {
      readonly type: 'run.recovered';
      readonly spec: SpecSlug;
      readonly tip: Oid;
      readonly issues: readonly IssueFacts[];
    }
  | {
      readonly type: 'spec.snapshotted';
      readonly spec: SpecSlug;
      readonly base: Oid;
      readonly tip: Oid;
      readonly issues: readonly IssueFacts[];
    }
  | { readonly type: 'spec.imported'; readonly spec: SpecSlug; readonly tip: Oid; readonly files: readonly string[] }
  | {
      readonly type: 'spec.plan.started';
      readonly spec: SpecSlug;
      /** 0: the first plan; else the round whose validation was red. */
      readonly round: number;
      /** Number of the plan in the Spec's History. */
      readonly plan: number;
      readonly driver: string;
      readonly log: string;
    }
  | {
      readonly type: 'spec.planned';
      readonly spec: SpecSlug;
      readonly round: number;
      /** The Issues that are new. */
      readonly issues: readonly IssueFacts[];
      readonly tip: Oid;
    }
  | {
      readonly type: 'spec.plan.rejected';
      readonly spec: SpecSlug;
      readonly round: number;
      readonly plan: number;
      readonly findings: readonly Finding[];
    }
  | {
      readonly type: 'spec.plan.retrying';
      readonly spec: SpecSlug;
      readonly reason: string;
      readonly inMs: number;
      readonly failures: number;
    }
  | {
      readonly type: 'spec.escalated';
      readonly spec: SpecSlug;
      readonly cause: SpecCause;
      readonly question: string;
      readonly findings: readonly Finding[];
    }
  | {
      readonly type: 'attempt.started';
      readonly issue: IssueId;
      readonly attempt: number;
      readonly driver: string;
      readonly slot: number;
      readonly base: Oid;
      readonly worktree: string;
      readonly log: string;
    }
  | {
      readonly type: 'attempt.finished';
      readonly issue: IssueId;
      readonly attempt: number;
      /** `committed`: its work goes to the gates; `failed`: it counts, ungated; `operation`: it does not count. */
      readonly result: 'committed' | 'failed' | 'operation' | 'stopped';
      readonly ended: Ended;
      readonly durationMs: number;
      /** What its call took, as its program reports it; absent when no program was started. */
      readonly usage?: Usage;
      readonly commit: Oid | null;
      readonly files: number;
      readonly insertions: number;
      readonly deletions: number;
      /** One sentence on why it is not `committed`. */
      readonly reason?: string;
    }
  | {
      readonly type: 'gate.started';
      readonly scope: RunScope;
      readonly gate: string;
      readonly issue: IssueId | null;
      readonly tree: Oid;
      readonly log: string;
      /** Driver of the judge; only of a gate that a judge decides. */
      readonly driver?: string;
      /** True: on the base with the tests of the Issue, to see that they fail there. */
      readonly probing?: true;
    }
  | {
      readonly type: 'gate.repeated';
      readonly scope: RunScope;
      readonly gate: string;
      readonly issue: IssueId | null;
      readonly tree: Oid;
      readonly log: string;
      /** Tests that are run alone; absent: the whole gate. */
      readonly tests?: readonly string[];
      /** Processes that wanted to run, on average over the last minute. */
      readonly load: number;
      /** How many can run at once. */
      readonly processors: number;
    }
  | {
      readonly type: 'gate.retrying';
      readonly scope: RunScope;
      readonly gate: string;
      readonly issue: IssueId | null;
      readonly reason: string;
      readonly inMs: number;
      readonly failures: number;
    }
  | {
      readonly type: 'gate.finished';
      readonly scope: RunScope;
      readonly gate: string;
      readonly issue: IssueId | null;
      readonly tree: Oid;
      readonly verdict: 'pass' | 'fail';
      /** True: this pass was paid for before, on the same code tree. */
      readonly cached: boolean;
      readonly durationMs: number;
      readonly ended: Ended | null;
      readonly findings: readonly Finding[];
      /** Why it is red; absent when it passed. */
      readonly cause?: string;
      /** What its run shows that was tested; absent when there is nothing that giro can read. */
      readonly evidence?: Evidence;
      /** Driver of the judge; only of a gate that a judge decides. */
      readonly driver?: string;
      /** Model of the judge as its program reports it; null: unknown. Only with `driver`. */
      readonly model?: string | null;
      /** What its calls took; only of a gate that a judge decided now. */
      readonly usage?: Usage;
      /** True: on the base with the tests of the Issue, where a red is what is looked for. */
      readonly probing?: true;
      /** The rule of giro.toml by which a person accepts this red; absent: none does. */
      readonly waiver?: string;
    }
  | {
      readonly type: 'attempt.judged';
      readonly issue: IssueId;
      readonly attempt: number;
      readonly verdict: 'pass' | 'fail' | 'operation';
      readonly findings: readonly Finding[];
      /** What would block, had a person not accepted it; absent: nothing. */
      readonly waived?: readonly Waived[];
    }
  | {
      readonly type: 'budget.charged';
      readonly spec: SpecSlug;
      /** `null`: the call was for the Spec as a whole. */
      readonly issue: IssueId | null;
      readonly role: Charge['role'];
      readonly driver: string;
      readonly usage: Usage;
      /** What this run spent on the Spec so far. */
      readonly sum: Spending;
      /** Where the budgets of the Spec and of the run stand; only those that are set. */
      readonly budgets: readonly BudgetStanding[];
    }
  | {
      readonly type: 'issue.retrying';
      readonly issue: IssueId;
      readonly reason: string;
      readonly inMs: number;
      readonly failures: number;
    }
  | { readonly type: 'issue.queued'; readonly issue: IssueId }
  | { readonly type: 'candidate.made'; readonly issue: IssueId; readonly tip: Oid; readonly tree: Oid }
  | {
      readonly type: 'candidate.conflicted';
      readonly issue: IssueId;
      readonly tip: Oid;
      readonly files: readonly string[];
    }
  | {
      readonly type: 'candidate.rejected';
      readonly issue: IssueId;
      readonly tip: Oid;
      readonly findings: readonly Finding[];
    }
  | { readonly type: 'lane.held'; readonly issue: IssueId; readonly message: string }
  | {
      readonly type: 'lease.refused';
      readonly issue: IssueId;
      readonly holder: LeaseHolder;
      /** It waited before; another has it now. */
      readonly again?: true;
    }
  | { readonly type: 'lease.freed'; readonly issue: IssueId }
  | { readonly type: 'issue.integrated'; readonly issue: IssueId; readonly commit: Oid; readonly attempts: number }
  | {
      readonly type: 'issue.escalated';
      readonly issue: IssueId;
      readonly cause: EscalationCause;
      readonly question: string;
      readonly attempts: number;
      readonly worktree: string | null;
    }
  | {
      readonly type: 'issue.answered';
      readonly issue: IssueId;
      readonly state: 'ready' | 'wontfix';
      /** How it was answered, in one line. */
      readonly how: string;
    }
  | {
      readonly type: 'spec.validated';
      readonly spec: SpecSlug;
      readonly tip: Oid;
      readonly verdict: 'pass' | 'fail';
      readonly findings: readonly Finding[];
    }
  | { readonly type: 'spec.state'; readonly spec: SpecSlug; readonly state: SpecState; readonly tip: Oid }
  | {
      readonly type: 'run.stopping';
      readonly reason: string;
      /** Absent in the events of a giro before there was more than one way. */
      readonly by?: StopCause;
    }
  | {
      readonly type: 'run.finished';
      readonly spec: SpecSlug | null;
      readonly exit: 0 | 1 | 2;
      readonly reason: RunReason;
      readonly tip: Oid | null;
      readonly done: number;
      readonly total: number;
      /** How many git processes the run started. */
      readonly gitProcesses: number;
      /** Last lines for a person: what is proved, what is asked, what to type next. */
      readonly lines: readonly string[];
    };

/** One event as written to NDJSON. */
export type Event = EventBody & {
  /** Version of this format. */
  readonly v: 1;
  /** ISO 8601 in UTC with milliseconds. */
  readonly at: string;
  /** Id of the run. */
  readonly run: string;
  /** The Spec it is about; absent: about none, or about all of the run. */
  readonly spec?: SpecSlug | null;
};

/** Takes what happened; adds time and run, and hands it on. */
export type Emit = (body: EventBody) => void;
