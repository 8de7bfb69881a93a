/** What the loops are handed: records, folders, judges and a lane. They know no git and no files. */
import type { DriverFor } from '../drivers/driver.js';
import type { WorkerEnvelope } from '../drivers/worker.js';
import type { Emit, EscalationCause } from '../event.js';
import type { Result } from '../failure.js';
import type { Verifier } from '../gates/gate.js';
import type { AttemptVerdict, Finding, GateNote, Issue, IssueId, Oid, Waived, WorkNote } from '../issue.js';
import type { Clock } from '../platform/clock.js';
import type { Environment } from '../platform/environment.js';
import type { Policy } from '../policy.js';
import type { Story } from '../record.js';
import type { Spec } from '../spec.js';
import type { Budgeting } from './budget.js';
import type { Parking } from './parking.js';

/** The durable record of one Issue; each method is one checkpoint. */
export interface IssueRecord {
  readonly issue: Issue;
  readonly ref: string;
  readonly commit: Oid | null;
  /** The newest tip of the integration branch that its branch contains. */
  readonly base: Oid;
  readonly attempt: number;
  readonly budgetUsed: number;
  readonly blockedInARow: number;
  /** What the worker of the newest attempt asks, when it said `blocked`. */
  readonly question: string | undefined;
  /** The gates of the newest attempt could not run at all, and nobody answered since. */
  readonly couldNotBeJudged: boolean;
  readonly findings: string;
  /** What the engine found on the work that is to be judged. */
  readonly workFindings: readonly Finding[];
  /** A person answered, and no attempt was made since. */
  readonly answered: boolean;
  readonly story: Story;
  /** The folder of the newest attempt was taken back: what differs there now is not an agent's, nor a broken set-up's. */
  readonly takenBack: boolean;
  /** Why the branch is not the engine's to write any more: every method but `escalate` then throws. */
  readonly lost: string | null;
  readonly conflicts: readonly string[];
  readonly standing: 'fresh' | 'interrupted' | 'between' | 'judging' | 'integrating' | 'by-hand' | 'needs-human';
  noProgress(limit: number): string | undefined;
  /** Conflicting files that `code` settles by dropping what landed there. */
  overruled(code: Oid): Promise<readonly string[]>;
  /** What the work changes against its base, file by file. */
  changes(): Promise<readonly ChangedFile[]>;
  /** `shown`: the code that a worker is shown; `files`: the whole tree of the branch. */
  trees(): Promise<{ readonly code: Oid; readonly shown: Oid; readonly baseCode: Oid; readonly files: Oid }>;
  bringOnto(tip: Oid): Promise<void>;
  recordAttempt(
    driver: string,
  ): Promise<{ readonly attempt: number; readonly commit: Oid; readonly files: Oid; readonly base: Oid }>;
  /** Takes a person's work: their commits on the branch, or `code` from their folder; or the newest work once more. */
  adoptWork(work: {
    readonly code: Oid | null;
    /** Who stands in the place of the driver. */
    readonly by: 'by hand' | 'judged again';
    /** What `code` is a merge with. */
    readonly onto?: Oid;
    readonly line: WorkNote;
    readonly findings: readonly Finding[];
  }): Promise<void>;
  commitWork(work: {
    readonly code: Oid;
    readonly line: WorkNote;
    readonly gated: boolean;
    readonly findings: readonly Finding[];
    /** True: its conflicts are still to be resolved. */
    readonly overrules?: boolean;
  }): Promise<Oid>;
  recordVerdict(verdict: {
    readonly verdict: AttemptVerdict;
    readonly code?: Oid;
    /** What the worker left, when no `commitWork` told it. */
    readonly line?: WorkNote;
    readonly gates: readonly GateNote[];
    readonly findings: readonly Finding[];
    /** Reds that do not block, by name. */
    readonly waived?: readonly Waived[];
  }): Promise<void>;
  recordRejection(entry: {
    readonly tip: Oid;
    readonly gates: readonly GateNote[];
    readonly findings: readonly Finding[];
  }): Promise<void>;
  escalate(entry: { readonly cause: EscalationCause; readonly packet: readonly string[] }): Promise<void>;
}

/** One file that the work changes. */
export interface ChangedFile {
  readonly path: string;
  readonly insertions: number;
  readonly deletions: number;
}

/** A folder handed to a worker. */
export interface WorkFolder {
  readonly folder: string;
  readonly slot: { readonly number: number; readonly portBase: number; readonly temporary: string };
}

/** What came back from a worker's folder, already told apart into code and `docs/specs/`. */
export interface Taken {
  /** `null`: the folder holds something that must not be added; see `findings`. */
  readonly code: Oid | null;
  readonly findings: readonly Finding[];
  readonly subjects: readonly string[];
  readonly size: { readonly files: number; readonly insertions: number; readonly deletions: number };
  /** What a person merged there: the newest commit of the integration branch that the files contain. */
  readonly onto?: Oid;
}

/** Worktrees, as the loop needs them. */
export interface WorkFolders {
  prepare(issue: IssueId, commit: Oid, files: Oid): Promise<Result<WorkFolder>>;
  takeBack(issue: Issue, base: Oid): Promise<Taken>;
  /** What a folder that an earlier run left holds now; `null` when there is none, or nothing but what giro put there. */
  found(issue: Issue, on: { readonly base: Oid; readonly own: Oid; readonly tip: Oid }): Promise<Taken | null>;
  /** What the engine finds on code that a person committed on the Issue's branch. */
  inspect(issue: Issue, code: Oid, base: Oid): Promise<readonly Finding[]>;
  /** The Issue is integrated: its folder may be re-used. */
  release(issue: IssueId): void;
  /** The Issue rests unfinished: its folder stays as it is. */
  leave(issue: IssueId): string | null;
}

/** How the merge lane answers. */
export type LaneAnswer =
  | { readonly kind: 'landed'; readonly commit: Oid }
  | {
      readonly kind: 'rejected';
      readonly tip: Oid;
      readonly gates: readonly GateNote[];
      readonly findings: readonly Finding[];
      /** Its only reds are gates that could not run at all. */
      readonly broken: boolean;
      /** Where the output of its red gates is. */
      readonly logs?: readonly string[];
    }
  | { readonly kind: 'held'; readonly message: string }
  | { readonly kind: 'stopped' };

/** Everything the Issue loop needs. */
export interface IssueLoopPorts {
  readonly spec: Pick<Spec, 'slug' | 'title' | 'body'>;
  readonly policy: Policy;
  readonly driver: DriverFor<WorkerEnvelope>;
  /** Of everybody whom this driver works for. */
  readonly parking: Parking;
  /** Asked before each call of a model. */
  readonly budget: Budgeting;
  readonly folders: WorkFolders;
  readonly verifier: Verifier;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** Aborted with `signal`, or before it: no agent is started any more. */
  readonly noMore: AbortSignal;
  readonly emit: Emit;
  /** The current tip of the integration branch. */
  readonly tip: () => Oid;
  readonly land: (record: IssueRecord) => Promise<LaneAnswer>;
  /** Writes packet and state on the integration branch too. */
  readonly publishEscalation: (record: IssueRecord) => Promise<void>;
  readonly environment: (request: EnvironmentRequest) => Environment;
  readonly logFile: (issue: IssueId, attempt: number) => string;
  readonly envelopeFile: (issue: IssueId, attempt: number, folder: WorkFolder) => string;
  /** Shows a path of a log as people read it. */
  readonly shown: (path: string) => string;
  /** Files of the user's checkout that changed since the run began. */
  readonly strayFiles: () => Promise<readonly string[]>;
  /** Between 0 and 1; spreads retries. */
  readonly jitter: () => number;
}

/** What a worker's environment is made from. */
export interface EnvironmentRequest {
  readonly issue: IssueId;
  readonly attempt: number;
  readonly folder: WorkFolder;
  readonly envelopeFile: string;
}
