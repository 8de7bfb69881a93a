/** Events as lines for a person who reads along or reads later in a CI log: pure, one event at a time. */
import { formatDuration } from '../platform/duration.js';
import type { Event } from '../event.js';
import { unreachable } from '../failure.js';
import { shortOid } from '../issue.js';
import type { Evidence, Finding, IssueId } from '../issue.js';
import { printable, printableLines } from '../platform/text.js';
import type { BacklogState } from '../backlog-state.js';
import { waitsForLease, type RunState } from '../state.js';
import { formatStanding, formatUsage } from '../usage.js';

/** How much is said: `quiet` what counts in the end, `normal` what changes something, `verbose` every event. */
export type Level = 'quiet' | 'normal' | 'verbose';

/** What one event says: its sentence, and lines that belong below it. */
interface Said {
  readonly text: string;
  readonly below?: readonly string[];
}

// Log lines are for reading: what is cut here is whole in the log files and in the NDJSON.
const longestLine = 400;
const shownFindings = 5;
const shownDetailLines = 6;
const shownQuestionLines = 20;
const widestPrefix = 32;

const quietTypes: ReadonlySet<Event['type']> = new Set([
  'issue.integrated',
  'issue.escalated',
  'spec.escalated',
  'issue.answered',
  'run.finished',
  'backlog.finished',
]);
const verboseTypes: ReadonlySet<Event['type']> = new Set([
  'gate.started',
  'gate.repeated',
  'issue.queued',
  'lease.freed',
  'candidate.made',
  'spec.state',
  'budget.charged',
]);

/**
 * Says an event in one line, with indented lines below it where there is more to read; null when the level leaves it
 * out. `state` is the state after the event. Times are in UTC, as in the events.
 */
export function lineOf(event: Event, state: RunState, level: Level = 'normal'): string | null {
  return lineFor(event, { name: issueOf(event) ?? state.spec ?? '', width: prefixWidth(state) }, level);
}

/** The same, for several Specs at once: each line names its Spec, also the last ones. */
export function backlogLineOf(event: Event, state: BacklogState, level: Level = 'normal'): string | null {
  const issue = issueOf(event);
  const spec = event.spec ?? null;
  const name = spec === null ? '' : issue === null ? spec : `${spec}/${issue}`;
  if (event.type !== 'run.finished' || event.reason === 'error')
    return lineFor(event, { name, width: backlogWidth(state) }, level);
  return event.lines.map((line) => printable(`${name}: ${line}`)).join('\n');
}

interface Prefix {
  readonly name: string;
  readonly width: number;
}

function lineFor(event: Event, { name, width }: Prefix, level: Level): string | null {
  if (level === 'quiet' && !quietTypes.has(event.type)) return null;
  if (level === 'normal' && (verboseTypes.has(event.type) || (event.type === 'lease.refused' && event.again)))
    return null;
  // What went wrong stands on stderr, where errors are looked for.
  const ends = event.type === 'backlog.finished' || (event.type === 'run.finished' && event.reason !== 'error');
  const closing = ends ? event.lines : [];
  if (closing.length > 0) return closing.map(printable).join('\n');
  const { text, below = [] } = said(event);
  const prefix = `${event.at.slice(11, 19)}  ${name.padEnd(width)}  `;
  return [prefix + text, ...below.map((line) => `${' '.repeat(prefix.length)}${line}`)].map(oneLine).join('\n');
}

function oneLine(text: string): string {
  const safe = printable(text);
  return safe.length > longestLine ? `${safe.slice(0, longestLine - 3)}...` : safe;
}

function issueOf(event: Event): IssueId | null {
  return 'issue' in event ? (event.issue ?? null) : null;
}

function prefixWidth(state: RunState): number {
  let widest = state.spec?.length ?? 0;
  for (const id of state.issues.keys()) widest = Math.max(widest, id.length);
  return Math.min(widest, widestPrefix);
}

function backlogWidth(state: BacklogState): number {
  const names = [...state.specs].flatMap(([spec, { issues }]) => [
    spec,
    ...[...issues.keys()].map((id) => `${spec}/${id}`),
  ]);
  return Math.min(Math.max(0, ...names.map((name) => name.length)), widestPrefix);
}

function said(event: Event): Said {
  switch (event.type) {
    case 'backlog.started':
    case 'backlog.finished':
      return saidOfBacklog(event);
    case 'run.started':
    case 'run.notice':
    case 'run.recovered':
    case 'run.stopping':
    case 'run.finished':
      return saidOfRun(event);
    case 'budget.charged':
      return { text: saidOfCharge(event) };
    case 'spec.snapshotted':
    case 'spec.imported':
    case 'spec.validated':
    case 'spec.state':
    case 'spec.escalated':
      return saidOfSpec(event);
    case 'spec.plan.started':
    case 'spec.planned':
    case 'spec.plan.rejected':
    case 'spec.plan.retrying':
      return saidOfPlan(event);
    case 'attempt.started':
    case 'attempt.finished':
    case 'attempt.judged':
      return saidOfAttempt(event);
    case 'gate.started':
    case 'gate.repeated':
    case 'gate.retrying':
    case 'gate.finished':
      return saidOfGate(event);
    case 'candidate.made':
    case 'candidate.conflicted':
    case 'candidate.rejected':
    case 'lane.held':
      return saidOfLane(event);
    case 'lease.refused':
    case 'lease.freed':
      return saidOfLease(event);
    case 'issue.retrying':
    case 'issue.queued':
    case 'issue.integrated':
    case 'issue.escalated':
    case 'issue.answered':
      return saidOfIssue(event);
    default:
      return unreachable(event);
  }
}

/** The events whose type begins with one of these words. */
type About<Word extends string> = Extract<Event, { readonly type: `${Word}.${string}` }>;

function saidOfBacklog(event: About<'backlog'>): Said {
  switch (event.type) {
    case 'backlog.started':
      return {
        text: `backlog of ${count(event.specs.length, 'Spec')} (${event.concurrency} agents at once)${event.until === null ? '' : `, until ${event.until}`}`,
        below: [
          ...event.specs.map(({ spec, why }, at) => `${String(at + 1)}. ${spec}: ${why}`),
          `logs: ${event.folder}`,
        ],
      };
    case 'backlog.finished':
      return { text: `backlog finished: ${event.reason}` };
    default:
      return unreachable(event);
  }
}

function saidOfRun(event: About<'run'>): Said {
  switch (event.type) {
    case 'run.started':
      return {
        text: `run started: ${event.title} (${event.concurrency} at once, ${count(event.attempts, 'attempt')} each)`,
        below: [
          `base ${shortOid(event.base)}${event.tip === null ? '' : `, tip ${shortOid(event.tip)}`}, giro ${event.giro}`,
          `gates: ${event.gates.length === 0 ? 'none' : event.gates.join(', ')}`,
          `logs: ${event.folder}`,
        ],
      };
    case 'run.notice':
      return { text: event.level === 'warning' ? `warning: ${event.message}` : event.message };
    case 'run.recovered':
      return { text: `goes on at ${shortOid(event.tip)}: ${standing(event.issues)}` };
    case 'run.stopping':
      return { text: `stopping: ${event.reason}` };
    case 'run.finished':
      return { text: `finished: ${event.reason}, ${event.done} of ${event.total} done` };
    default:
      return unreachable(event);
  }
}

type PlanEvent = About<'spec.plan'> | Extract<Event, { type: 'spec.planned' }>;

function saidOfSpec(event: Exclude<About<'spec'>, PlanEvent>): Said {
  switch (event.type) {
    case 'spec.snapshotted':
      return { text: `snapshot at ${shortOid(event.tip)}: ${standing(event.issues)}` };
    case 'spec.imported':
      return { text: `took over edits of ${count(event.files.length, 'file')}: ${event.files.join(', ')}` };
    case 'spec.validated':
      return {
        text: `validate at ${shortOid(event.tip)}: ${event.verdict}`,
        below: details(event.findings.filter(hasNoGate)),
      };
    case 'spec.state':
      return { text: `Spec is ${event.state} at ${shortOid(event.tip)}` };
    case 'spec.escalated': {
      const question = linesOf(event.question, shownQuestionLines);
      return { text: `the Spec needs a human (${event.cause}): ${question[0] ?? ''}`, below: question.slice(1) };
    }
    default:
      return unreachable(event);
  }
}

function saidOfCharge({ role, driver, usage, budgets }: About<'budget'>): string {
  const took = formatUsage(usage).join(', ');
  return [`the ${role} (${driver}) took ${took}`, ...budgets.map(formatStanding)].join('; ');
}

function saidOfPlan(event: PlanEvent): Said {
  switch (event.type) {
    case 'spec.plan.started':
      return {
        text: `plan ${event.plan} started (${event.driver}${event.round === 0 ? '' : `, gaps of round ${event.round}`})`,
      };
    case 'spec.planned':
      return {
        text: `planned at ${shortOid(event.tip)}: ${count(event.issues.length, event.round === 0 ? 'Issue' : 'gap Issue')}`,
        below: event.issues.map((issue) => `- ${issue.id}: ${issue.title}`),
      };
    case 'spec.plan.rejected':
      return { text: `plan ${event.plan} is not taken: ${because(event.findings)}`, below: details(event.findings) };
    case 'spec.plan.retrying':
      return {
        text: `plans again in ${formatDuration(event.inMs)}, ${count(event.failures, 'failure')} in a row: ${event.reason}`,
      };
    default:
      return unreachable(event);
  }
}

function saidOfAttempt(event: About<'attempt'>): Said {
  switch (event.type) {
    case 'attempt.started':
      return { text: `attempt ${event.attempt} started (${event.driver}, slot ${event.slot})` };
    case 'attempt.finished':
      return { text: `attempt ${event.attempt} ${resultOf(event)} (${formatDuration(event.durationMs)})` };
    case 'attempt.judged': {
      const { waived = [] } = event;
      const waivers = waived.length === 0 ? '' : `, with ${count(waived.length, 'waiver')}`;
      return {
        text:
          event.verdict === 'pass'
            ? `attempt ${event.attempt} passed every gate${waivers}`
            : `attempt ${event.attempt} ${event.verdict === 'fail' ? 'is red' : 'was not judged'}: ${because(event.findings)}`,
        below: [
          ...details(event.findings.filter(hasNoGate)),
          ...waived.map(({ finding, what }) => `waived ${finding}: ${what}`),
        ],
      };
    }
    default:
      return unreachable(event);
  }
}

function resultOf(event: Extract<Event, { type: 'attempt.finished' }>): string {
  const reason = event.reason === undefined ? '' : `: ${event.reason}`;
  switch (event.result) {
    case 'committed': {
      const commit = event.commit === null ? '' : ` as ${shortOid(event.commit)}`;
      return `committed${commit}: ${count(event.files, 'file')}, +${event.insertions} -${event.deletions}`;
    }
    case 'failed':
      return `failed${reason}`;
    case 'operation':
      return `does not count${reason}`;
    case 'stopped':
      return `stopped${reason}`;
    default:
      return unreachable(event.result);
  }
}

const wheres = {
  issue: '',
  integration: ' on the merged tree',
  spec: ' on the Spec',
  base: ' on the base',
} as const;

function saidOfGate(event: About<'gate'>): Said {
  if (event.type === 'gate.retrying') {
    const again = `is judged again in ${formatDuration(event.inMs)}`;
    return {
      text: `gate ${event.gate} ${again}${wheres[event.scope]}, ${count(event.failures, 'failure')} in a row: ${event.reason}`,
    };
  }
  const isProbe = event.type !== 'gate.repeated' && event.probing === true;
  const where = isProbe ? ' on the base with the tests of the Issue' : wheres[event.scope];
  if (event.type === 'gate.started') {
    const by = event.driver === undefined ? '' : `, judged by ${event.driver}`;
    return { text: `gate ${event.gate} started${where}${by}` };
  }
  if (event.type === 'gate.repeated') {
    const what = event.tests === undefined ? '' : `, ${count(event.tests.length, 'test')} alone`;
    const load = `load ${String(event.load)} on ${count(event.processors, 'processor')}`;
    return { text: `gate ${event.gate} is red${where} and runs once more${what} (${load})` };
  }
  if (event.verdict === 'fail' && event.ended === null && event.findings.length === 0) {
    return { text: `gate ${event.gate} was not run${where}: it waits for the others to be green` };
  }
  const time = [
    ...(event.driver === undefined ? [] : [judgeOf(event.driver, event.model ?? null)]),
    event.cached ? 'known from before' : formatDuration(event.durationMs),
    ...(event.evidence === undefined ? [] : [testsOf(event.evidence)]),
  ].join(', ');
  if (event.verdict === 'pass') return { text: `gate ${event.gate} passed${where} (${time})` };
  if (isProbe) return { text: `gate ${event.gate} is red${where} (${time})` };
  const how = event.waiver === undefined ? 'failed' : `is red, accepted by ${event.waiver}`;
  return { text: `gate ${event.gate} ${how}${where} (${time})`, below: details(event.findings) };
}

/** Only what ran is said here: what failed is in the findings. */
function testsOf({ tests }: Evidence): string {
  return tests === null ? 'tests ran' : count(tests, 'test');
}

function judgeOf(driver: string, model: string | null): string {
  return model === null ? driver : `${driver} with ${model}`;
}

function saidOfLane(event: About<'candidate' | 'lane'>): Said {
  switch (event.type) {
    case 'candidate.made':
      return { text: `candidate on ${shortOid(event.tip)}: tree ${shortOid(event.tree)}` };
    case 'candidate.conflicted':
      return { text: `conflicts with ${shortOid(event.tip)} in ${event.files.join(', ')}` };
    case 'candidate.rejected':
      return {
        text: `red on top of ${shortOid(event.tip)}: ${because(event.findings)}`,
        below: details(event.findings.filter(hasNoGate)),
      };
    case 'lane.held':
      return { text: `integration is held: ${event.message}` };
    default:
      return unreachable(event);
  }
}

function saidOfLease(event: About<'lease'>): Said {
  switch (event.type) {
    case 'lease.refused':
      return { text: waitsForLease(event.holder) };
    case 'lease.freed':
      return { text: 'what it waited for is free' };
    default:
      return unreachable(event);
  }
}

function saidOfIssue(event: About<'issue'>): Said {
  switch (event.type) {
    case 'issue.retrying':
      return {
        text: `retries in ${formatDuration(event.inMs)}, ${count(event.failures, 'failure')} in a row: ${event.reason}`,
      };
    case 'issue.queued':
      return { text: 'queued for integration' };
    case 'issue.integrated':
      return { text: `integrated as ${shortOid(event.commit)} after ${count(event.attempts, 'attempt')}` };
    case 'issue.answered':
      return { text: `answered, ${event.state === 'ready' ? 'and taken up again' : 'and given up'}: ${event.how}` };
    case 'issue.escalated': {
      const question = linesOf(event.question, shownQuestionLines);
      return {
        text: `needs a human (${event.cause}, ${count(event.attempts, 'attempt')}): ${question[0] ?? ''}`,
        below: [...question.slice(1), ...(event.worktree === null ? [] : [`worktree: ${event.worktree}`])],
      };
    }
    default:
      return unreachable(event);
  }
}

function standing(issues: readonly { readonly state: string }[]): string {
  const settled = issues.filter((issue) => issue.state === 'done' || issue.state === 'wontfix').length;
  const human = issues.filter((issue) => issue.state === 'needs-human').length;
  return `${count(issues.length, 'Issue')}, ${settled} done${human === 0 ? '' : `, ${human} needs-human`}`;
}

/** The first reason, and how many more there are. */
function because(findings: readonly Finding[]): string {
  const [first] = findings;
  if (first === undefined) return 'no findings';
  const gate = first.gate === undefined ? '' : `${first.gate}: `;
  return `${gate}${first.message}${findings.length === 1 ? '' : ` (and ${findings.length - 1} more)`}`;
}

/** Findings of a gate are shown with the gate; here are those that only the engine knows. */
function hasNoGate(finding: Finding): boolean {
  return finding.gate === undefined;
}

function details(findings: readonly Finding[]): readonly string[] {
  const shown = findings
    .slice(0, shownFindings)
    .flatMap((finding) => [
      `- ${placeOf(finding)}${finding.message}`,
      ...linesOf(finding.detail ?? '', shownDetailLines).map((line) => `    ${line}`),
    ]);
  const left = findings.length - shownFindings;
  return left > 0 ? [...shown, `- and ${left} more`] : shown;
}

function placeOf(finding: Finding): string {
  if (finding.file === undefined) return '';
  return `${finding.file}${finding.line === undefined ? '' : `:${finding.line}`}: `;
}

function linesOf(text: string, most: number): readonly string[] {
  const lines = printableLines(text)
    .split('\n')
    .filter((line) => line.trim() !== '');
  return lines.length > most ? [...lines.slice(0, most), `... ${lines.length - most} more lines`] : lines;
}

function count(number: number, word: string): string {
  return `${number} ${word}${number === 1 ? '' : 's'}`;
}
