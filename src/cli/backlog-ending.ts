/** The last lines of a backlog: what is proved, what is asked of whom, what was not reached. Pure. */
import type { BacklogResult, RunReason } from '../event.js';
import type { SpecSlug } from '../issue.js';
import type { SpentFacts } from '../usage.js';
import { spentLines } from './ending.js';
import { exitCodes, type ExitCode } from './exit.js';
import { howToGoOn, type StoppedBy } from './stopping.js';

/** How one Spec of a backlog ended. */
export interface SpecOutcome extends BacklogResult {
  readonly spec: SpecSlug;
  /** It asked before the night already, and nothing was spent on it. */
  readonly asks: boolean;
}

/** How the night ended. */
export interface BacklogEnding {
  readonly exit: ExitCode;
  readonly reason: RunReason;
  readonly specs: readonly BacklogResult[];
  readonly lines: readonly string[];
}

const words: Readonly<Record<BacklogResult['result'], string>> = {
  proved: 'proved',
  'needs-human': 'needs a human',
  unfinished: 'unfinished',
  'not-started': 'not started',
  failed: 'failed',
};

/** Composes the end of a night. The very last line says the result. */
export function backlogEnding(
  outcomes: readonly SpecOutcome[],
  { stopped, spent }: { readonly stopped: StoppedBy | null; readonly spent: SpentFacts | null },
): BacklogEnding {
  const specs = outcomes.map(({ spec, result, why }) => ({ spec, result, why: oneLine(why) }));
  const width = Math.max(0, ...specs.map(({ result }) => words[result].length));
  const lines = specs.map(({ spec, result, why }) => `${words[result].padEnd(width)}  ${spec}: ${why}`);
  const count = (result: BacklogResult['result']): number => specs.filter((one) => one.result === result).length;
  const exit = exitOf(specs);
  const total = `${String(count('proved'))} of ${String(specs.length)} Specs proved`;
  const rest = (['failed', 'needs-human', 'unfinished', 'not-started'] as const)
    .filter((result) => count(result) > 0)
    .map((result) => `${String(count(result))} ${words[result]}`);
  const summary = [total, ...rest].join(', ');
  return {
    exit,
    reason: reasonOf(exit, stopped),
    specs,
    lines: [...lines, ...spentLines(spent), lastLine({ exit, stopped, summary, specs })],
  };
}

/** The worst: an error, then a human, then proof. */
function exitOf(specs: readonly BacklogResult[]): ExitCode {
  if (specs.some(({ result }) => result === 'failed')) return exitCodes.error;
  return specs.every(({ result }) => result === 'proved') ? exitCodes.proof : exitCodes.needsHuman;
}

function reasonOf(exit: ExitCode, stopped: StoppedBy | null): RunReason {
  if (exit === exitCodes.proof) return 'proof';
  if (stopped !== null) return 'stopped';
  return exit === exitCodes.error ? 'error' : 'needs-human';
}

function lastLine(parts: {
  readonly exit: ExitCode;
  readonly stopped: StoppedBy | null;
  readonly summary: string;
  readonly specs: readonly BacklogResult[];
}): string {
  const { exit, stopped, summary, specs } = parts;
  if (specs.length === 0) return 'nothing to run: no Spec of docs/specs is draft, active or answered';
  if (exit === exitCodes.proof) return `proof: ${summary}`;
  if (stopped !== null)
    return `stopped: ${stopped.why}; ${summary}; go on with: ${howToGoOn(stopped, 'giro implement docs/specs')}`;
  return `${exit === exitCodes.error ? 'error' : 'needs a human'}: ${summary}`;
}

function oneLine(text: string): string {
  return text.trim().replace(/\s*\n\s*/g, ' · ');
}
