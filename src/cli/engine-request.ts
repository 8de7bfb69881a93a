/** What a run is given and comes to. */
import type { Emit } from '../event.js';
import type { IssueId, IssueState, Oid } from '../issue.js';
import type { SpecEnd } from '../loop/spec-loop.js';
import type { Clock } from '../platform/clock.js';
import type { AgentShare } from '../scheduler/slots.js';
import type { Waiver } from '../store/waivers.js';
import type { OpenedGit } from '../worktree/git-types.js';
import type { hooksNotice } from './hooks-notice.js';
import type { openLeasing } from './leasing.js';
import type { openLeftovers } from './leftovers.js';
import type { Prepared } from './prepare.js';
import type { Shared } from './shared.js';
import type { Stack } from './stacking.js';
import type { openWorkshop } from './workshop.js';

/** What a run is given; everything was checked before. */
export interface EngineRequest {
  readonly git: OpenedGit;
  readonly prepared: Prepared;
  readonly top: string;
  /** What a first run starts from, and what is taken along. */
  readonly stack: Stack;
  /** Only this Issue; `null`: all of them. */
  readonly only: IssueId | null;
  readonly shared: Shared;
  /** This Spec's part of the agents. */
  readonly agents: AgentShare;
  readonly own: Readonly<Record<string, string | undefined>>;
  readonly cacheFolder: string;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** Aborted with `signal`, or before it: no agent is started any more, while what runs goes on to its end. */
  readonly noMore: AbortSignal;
  /** Told how long it took from the end of an agent to the integration. */
  readonly landed: (ms: number) => void;
  readonly emit: Emit;
  /** Id of the run. */
  readonly run: string;
  readonly runFolder: string;
  readonly giro: string;
  readonly jitter: () => number;
}

/** How a run ended, with what the last lines need. */
export interface EngineEnd {
  readonly end: SpecEnd;
  readonly tip: Oid;
  readonly states: ReadonlyMap<IssueId, IssueState>;
  /** Reds that a person accepted, and that the integrated work stands on. */
  readonly waivers: readonly Waiver[];
  /** Files of the person's checkout that changed during the run. */
  readonly stray: readonly string[];
}

/** What of a run works on the machine itself, beside git and the clock. */
export interface EngineParts {
  readonly openWorkshop: typeof openWorkshop;
  readonly openLeftovers: typeof openLeftovers;
  readonly openLeasing: typeof openLeasing;
  readonly hooksNotice: typeof hooksNotice;
}
