/** The contract between the loops and the programs that work, judge and plan. One call is one context of a model. */
import type { Ended } from '../event.js';
import type { Result } from '../failure.js';
import type { IssueId, SpecSlug } from '../issue.js';
import type { Environment } from '../platform/environment.js';
import type { Usage } from '../usage.js';

/** What a call is made for. */
export type Role = 'worker' | 'judge' | 'planner';

/** What one call of a driver is given. Everything it may touch is in here. */
export interface DriverRequest {
  readonly role: Role;
  readonly spec: SpecSlug;
  /** `null`: the Spec as a whole is meant. */
  readonly issue: IssueId | null;
  /** The gate that a judge judges for; `null` for the other roles. */
  readonly gate: string | null;
  /** The attempt of the Issue, or the round of the Spec. */
  readonly attempt: number;
  readonly prompt: string;
  /** The agent's current folder: a worktree, or the clean checkout of a judge or planner. */
  readonly folder: string;
  /** Complete: the allow-list, the driver's own names, `GIRO_*` and `TMPDIR`. */
  readonly environment: Environment;
  /** Where the agent may write its envelope; outside its folder. Whatever stands there before is removed. */
  readonly envelopeFile: string;
  /** The transcript a person reads. */
  readonly logFile: string;
  readonly timeoutMs: number;
  readonly graceMs: number;
  readonly signal: AbortSignal;
}

/** What an envelope of a role is, and what its absence means. One parser reads all of them by it. */
export interface EnvelopeContract<T> {
  /** The keys that mark it: the last object of an output that has one of them counts. */
  readonly fields: readonly [string, ...string[]];
  /** Says whether an object in the middle of an output is meant as an envelope; else it is noise. */
  readonly isMeant: (value: Readonly<Record<string, unknown>>) => boolean;
  /** Reads an object that has one of the fields; the failure says in one line what is wrong with it. */
  readonly parse: (value: Readonly<Record<string, unknown>>) => Result<T, string>;
  /** JSON schema, for prompts and for programs that take one. */
  readonly schema: Readonly<Record<string, unknown>>;
  /** What exit 0 without an envelope means; `null`: the call has failed. */
  readonly absent: T | null;
  /** True: several objects that do not all say the same are no envelope. */
  readonly single: boolean;
  /** Adds what the driver has to say about the call, where the envelope has room for it. */
  readonly noted?: (envelope: T, note: string) => T;
}

/** What one call came to. */
export type ActorResult<T> =
  /** It ended by itself, with its envelope. */
  | { readonly kind: 'finished'; readonly envelope: T }
  /** It counts as an attempt, but says nothing that could be used. */
  | { readonly kind: 'failed'; readonly reason: string }
  /** Something around the agent broke: it does not count and is tried again later. */
  | { readonly kind: 'operation'; readonly reason: string; readonly until?: string }
  /** The same, because the account is used up: nobody else who works on it is to be started before. */
  | { readonly kind: 'usage-limit'; readonly reason: string; readonly until?: string }
  /** The run was stopped. */
  | { readonly kind: 'stopped' };

/** The result with how the process ended. */
export interface DriverOutcome<T> {
  readonly result: ActorResult<T>;
  readonly ended: Ended;
  readonly durationMs: number;
  /** The last lines of the transcript, fit for a terminal. */
  readonly tail: string;
  readonly usage: Usage;
  /** The model that worked, as its program reports it; `null`: unknown. */
  readonly model: string | null;
}

/** The adapter to one agent program. */
export interface Driver {
  readonly name: string;
  run<T>(request: DriverRequest, contract: EnvelopeContract<T>): Promise<DriverOutcome<T>>;
}

/** A driver as whoever needs it for one role only sees it. */
export interface DriverFor<T> {
  readonly name: string;
  run(request: DriverRequest, contract: EnvelopeContract<T>): Promise<DriverOutcome<T>>;
}
