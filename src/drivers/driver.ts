/** The contract between the loops and the programs that do the work. One call is one attempt. */
import type { Ended } from '../event.js';
import type { IssueId, SpecSlug } from '../issue.js';
import type { Environment } from '../platform/environment.js';

/** What one call of a driver is given. Everything it may touch is in here. */
export interface DriverRequest {
  readonly role: 'worker';
  readonly spec: SpecSlug;
  readonly issue: IssueId;
  readonly attempt: number;
  readonly prompt: string;
  /** The worktree: the agent's current folder. */
  readonly folder: string;
  /** Complete: the allow-list, the driver's own names, `GIRO_*` and `TMPDIR`. */
  readonly environment: Environment;
  /** Where the agent may write its envelope; outside the worktree. Whatever stands there before is removed. */
  readonly envelopeFile: string;
  /** The transcript a person reads. */
  readonly logFile: string;
  readonly timeoutMs: number;
  readonly graceMs: number;
  readonly signal: AbortSignal;
}

/** What a worker says at its end. It says only that the attempt is over: the gates judge the tree either way. */
export interface WorkerEnvelope {
  readonly status: 'done' | 'blocked';
  readonly summary?: string;
  readonly question?: string;
}

/** What one call came to. */
export type WorkerResult =
  /** The work goes to the gates. */
  | { readonly kind: 'finished'; readonly envelope: WorkerEnvelope }
  /** It counts as an attempt; the work is kept, but not gated. */
  | { readonly kind: 'failed'; readonly reason: string }
  /** Something around the agent broke: it does not count and is tried again later. */
  | { readonly kind: 'operation'; readonly reason: string; readonly until?: string }
  /** The run was stopped. */
  | { readonly kind: 'stopped' };

/** The result with how the process ended. */
export interface DriverOutcome {
  readonly result: WorkerResult;
  readonly ended: Ended;
  readonly durationMs: number;
  /** The last lines of the transcript, fit for a terminal. */
  readonly tail: string;
}

/** The adapter to one agent program. */
export interface Driver {
  readonly name: string;
  run(request: DriverRequest): Promise<DriverOutcome>;
}
