/** What `giro implement` is given, and how the process ends. */
import type { Level } from '../report/lines.js';
import type { Deadline } from './deadline.js';
import type { ExitCode } from './exit.js';
import type { StopSignal } from './stopping.js';

/** What was typed. */
export interface ImplementOptions {
  readonly target: string;
  /** `null`: `[limits] agents`. */
  readonly concurrency: number | null;
  /** USD; `null`: `[budget] run-cost`. */
  readonly maxCost: number | null;
  readonly json: boolean;
  readonly plain: boolean;
  readonly dryRun: boolean;
  readonly quiet: boolean;
  readonly verbose: boolean;
  readonly folder: string;
  /** `null`: the run has the time it needs. */
  readonly deadline: Deadline | null;
}

/** How the process ends: with an exit code, or by the signal that stopped it. */
export type ProcessEnd = { readonly exit: ExitCode } | { readonly signal: StopSignal };

/** How much is said. */
export function levelOf({ quiet, verbose }: Pick<ImplementOptions, 'quiet' | 'verbose'>): Level {
  return quiet ? 'quiet' : verbose ? 'verbose' : 'normal';
}
