/** What the end of a gate means: its cause, and the one finding a person or a model can act on. Pure. */
import type { Ended } from '../event.js';
import { unreachable } from '../failure.js';
import type { Evidence, Finding } from '../issue.js';
import { digestOf } from '../issue.js';
import { formatLimit } from '../platform/duration.js';
import type { GroupMember } from '../platform/members.js';
import { printable, tailLines } from '../platform/text.js';
import type { GateRules } from '../policy.js';
import { isNamed, matchingLine, plainLines, whyVacuous } from './evidence.js';
import type { GateCause, Lacking } from './gate.js';

/** What is known of a gate that ran. */
export interface GateEnding {
  readonly gate: string;
  readonly ended: Ended;
  /** Which limit on processes or memory it met, in words; absent, `null`: none. */
  readonly met?: string | null;
  /** Tracked files that it rewrote. */
  readonly changed: readonly string[];
  /** The end of its output, raw. */
  readonly output: string;
  /** Empty unless `mayLack` asks. */
  readonly lacks: Lacking;
  /** What was tested, as far as it can be read. */
  readonly evidence: Evidence | null;
  /** Processes of its group that were still running when it exited with 0. */
  readonly left: readonly GroupMember[];
  readonly rules: GateRules;
  /** Why the report that the gate should write says nothing; `null`: it does, or none is asked for. */
  readonly noReport: string | null;
}

/** A red gate; a green one has no cause and no finding. */
export interface Red {
  readonly cause: GateCause;
  readonly finding: Finding;
}

/** How much of the output goes into a finding. */
const detailLines = 60;
const detailBytes = 6 * 1024;
/** Colours and progress bars are taken out of no more than this. */
const lookedAt = 64 * 1024;

/** Judges a gate that ran: null is green, and only an exit with 0 that left the tree as it was is that. */
export function judgeGate(ending: GateEnding): Red | null {
  const { ended, gate, changed } = ending;
  switch (ended.kind) {
    case 'exited':
      if (ended.code === 0)
        return changed.length === 0 ? judgeGreen(ending) : { cause: 'dirty', finding: dirtyFinding(gate, changed) };
      if (isNotFound(ended.code) && isOfTheGate(ending))
        return red(ending, 'cannot-run-here', `cannot run here: ${whatIsMissing(ended.code, ending)}`);
      return red(
        ending,
        'failed',
        `failed: exit ${String(ended.code)}${because(ending)}${failedTests(ending)}${hint(ending)}`,
      );
    case 'timed-out':
      return red(ending, 'timed-out', `timed out after ${formatLimit(ended.limitMs)}`);
    case 'stalled':
      return red(ending, 'failed', `was ended: ${ended.reason}`);
    case 'signalled':
      return red(ending, 'errored', `was killed by ${ended.signal}${because(ending)}`);
    case 'could-not-start':
      return red(ending, 'errored', `could not start: ${ended.reason}`);
    case 'cancelled':
      return red(ending, 'cancelled', 'was stopped');
    default:
      return unreachable(ended);
  }
}

/** An exit with 0 is a pass only if it is the work's own exit, and if the work tested something. */
function judgeGreen(ending: GateEnding): Red | null {
  const { rules, evidence, left, output, noReport } = ending;
  // A server that was left running has done its part, and so has whoever asked it something.
  const working = left.filter(({ serves }) => !serves).map(({ command }) => command);
  if (working.length > 0) {
    const what = `exited with 0 while what it had started was still at work (${listed(working, 3)}): that exit says nothing of the work; let it wait for it`;
    return red(ending, 'vacuous', what);
  }
  const { mustMatch, mustNotMatch } = rules;
  const against = mustNotMatch === null ? null : matchingLine(output, mustNotMatch);
  if (against !== null)
    return red(ending, 'failed', `exited with 0, but its output has a line that must not be there: ${against.trim()}`);
  if (noReport !== null)
    return red(ending, 'vacuous', `exited with 0, but its report ${rules.junit ?? ''} ${noReport}`);
  const why = whyVacuous(evidence, rules);
  if (why !== null) return red(ending, 'vacuous', why);
  if (mustMatch !== null && matchingLine(output, mustMatch) === null)
    return red(ending, 'vacuous', `exited with 0, but no line of its output matches must-match: ${mustMatch}`);
  return null;
}

/** Tells whether something that the clean checkout lacks may be the reason; only then it is worth a look. */
export function mayLack(ended: Ended, output: string): boolean {
  if (ended.kind !== 'exited' || ended.code === 0) return false;
  return isNotFound(ended.code) || missingWords.test(output);
}

/** Makes the finding of a gate. */
export function gateFinding(gate: string, what: string, output = ''): Finding {
  const detail = tailLines(output.slice(-lookedAt), detailLines, detailBytes);
  return { message: `gate ${gate} ${printable(what)}`, gate, ...(detail === '' ? {} : { detail }) };
}

function red(ending: GateEnding, cause: GateCause, what: string): Red {
  const { gate, evidence, output } = ending;
  const finding = gateFinding(gate, what, output);
  // Whoever accepts it accepts what was seen, not whatever else the gate may find one day.
  const shows = cause === 'failed' ? digestOf(isNamed(evidence) ? evidence.failures : plainLines(output)) : undefined;
  return { cause, finding: shows === undefined ? finding : { ...finding, shows } };
}

function because({ met = null }: GateEnding): string {
  return met === null ? '' : `: ${met}`;
}

function failedTests({ evidence }: GateEnding): string {
  return isNamed(evidence) ? `: ${listed(evidence.failures, 3)}` : '';
}

function dirtyFinding(gate: string, changed: readonly string[]): Finding {
  const finding = gateFinding(
    gate,
    `rewrote ${listed(changed, 10)}: what it checked is not what was committed; use the form of the command that only checks`,
  );
  const [file] = changed;
  return file === undefined ? finding : { ...finding, file: printable(file) };
}

/** What shells and the usual runtimes say when a file, module or program is not there. */
const missingWords =
  /cannot find (?:module|package)|module_not_found|modulenotfounderror|no module named|not found|no such file or directory/i;

function isNotFound(code: number): boolean {
  return code === 126 || code === 127;
}

/**
 * Tells a gate that cannot start its own program from work under test that calls one that does not exist: the gate's own
 * shell (or `env`, or the one npm starts) says so, not a script of the repository; or the clean checkout lacks something.
 */
function isOfTheGate({ output, lacks }: GateEnding): boolean {
  return (
    lacks.names.length > 0 ||
    /^(?:\S*\/)?(?:bash|sh|dash|zsh|env): .*(?:not found|No such file|Permission denied|Is a directory|cannot execute)/m.test(
      output,
    )
  );
}

function whatIsMissing(code: number, ending: GateEnding): string {
  const program = missingProgram(code, ending.output);
  const what = code === 127 ? 'command not found' : 'command not executable';
  return `${program === undefined ? what : `${what}: ${program}`} (exit ${String(code)})${hint(ending)}`;
}

/** Reads the program's name where a shell or `env` names it. Other words, or another language: the output itself is in the finding. */
function missingProgram(code: number, output: string): string | undefined {
  const pattern =
    code === 127
      ? /^.*?([^\s:'‘’"]+)['’"]?: (?:(?:command )?not found|No such file or directory)\s*$/gm
      : /^.*?([^\s:'‘’"]+)['’"]?: (?:Permission denied|Is a directory|cannot execute.*)\s*$/gm;
  return [...output.matchAll(pattern)].at(-1)?.[1];
}

function hint({ lacks }: GateEnding): string {
  const { names, install } = lacks;
  if (names.length === 0) return '';
  const setup =
    install === null ? 'make it with [worktree] setup' : `add [worktree] setup = ${JSON.stringify(install)}`;
  return `; the clean checkout has no ${listed(names, 5)}: ${setup}, or list it under copy or link`;
}

function listed(names: readonly string[], most: number): string {
  const more = names.length - most;
  return names.slice(0, most).join(', ') + (more > 0 ? ` and ${String(more)} more` : '');
}
