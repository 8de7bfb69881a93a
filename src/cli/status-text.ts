/** `giro status` as text for a person. */
import type { IssueId } from '../issue.js';
import { printable } from '../platform/text.js';
import { specsFolder } from '../spec.js';
import { waitsForLease } from '../state.js';
import { formatSpent, formatSpending, isUnknown, type BudgetStanding, type Spending } from '../usage.js';
import type { Packet } from '../packet.js';
import { packetText } from './packet-text.js';
import { leftLines } from './status-left.js';
import { stopLines } from './status-stop.js';
import type { IssueStatusJson, SpecStatusJson } from './status-read.js';

/** All Specs, a line each. */
export function overview(specs: readonly SpecStatusJson[]): string {
  if (specs.length === 0) return 'no Specs yet: write one with giro init\n';
  const width = Math.max(...specs.map((spec) => spec.spec.length));
  const lines = specs.map((spec) => {
    const done = spec.issues.filter((issue) => issue.state === 'done').length;
    const asking = spec.issues.filter((issue) => issue.state === 'needs-human').length;
    const left = spec.left === undefined ? '' : `, ${String(spec.left.length)} left running`;
    const asks = asking > 0 ? `, ${String(asking)} need a human` : spec.question === undefined ? '' : ', asks';
    return `${spec.spec.padEnd(width)}  ${spec.state.padEnd(11)}  ${String(done)}/${String(spec.issues.length)} done${asks}${left}  ${printable(spec.title)}`;
  });
  return `${lines.join('\n')}\n`;
}

const symbols: Readonly<Record<string, string>> = {
  done: '✔',
  'needs-human': '!',
  wontfix: '-',
  ready: '·',
  'in-progress': '▶',
};

/** One Spec with its Issues, and what to do next. */
export function specText(spec: SpecStatusJson): string {
  const table = tableOf(spec);
  const lines = [
    `${spec.spec}: ${printable(spec.title)}`,
    `state ${spec.state}${spec.tip === null ? ', never run' : ` · giro/${spec.spec} at ${spec.tip.slice(0, 7)}${spec.base === null ? '' : ` · base ${spec.base.slice(0, 7)}`}`}`,
    spec.running === null
      ? 'nothing is running on it'
      : `running: process ${String(spec.running.pid)} on ${printable(spec.running.host)}`,
    ...stopLines(spec),
    ...leftLines(spec.spec, spec.left),
    ...(spec.spending.calls === 0 ? [] : [`spent ${spentText(spec.spending, spec.budgets)}`]),
    ...(spec.question === undefined ? [] : [`asks: ${printable(spec.question)}`]),
    '',
    ...spec.issues.flatMap((issue) => issueLines(issue, table)),
    ...(spec.issues.length === 0 ? ['no Issues yet: they are planned first, or write them yourself'] : []),
    '',
    ...nextLines(spec),
  ];
  return `${lines.join('\n')}\n`;
}

function spentText(sum: Spending, budgets: readonly BudgetStanding[] = []): string {
  return isUnknown(sum)
    ? [formatSpending(sum), formatSpent({ sum, budgets })].filter((part) => part !== '').join(', ')
    : formatSpent({ sum, budgets });
}

/** What all rows share. */
interface Table {
  readonly width: number;
  readonly asking: ReadonlySet<IssueId>;
}

function tableOf(spec: SpecStatusJson): Table {
  const asking = spec.issues.filter((issue) => issue.state === 'needs-human').map((issue) => issue.id);
  return { width: Math.max(...spec.issues.map((issue) => issue.id.length)), asking: new Set(asking) };
}

function issueLines(issue: IssueStatusJson, { width, asking }: Table): readonly string[] {
  const phase = issue.phase === undefined ? '' : ` (${issue.phase})`;
  const attempts =
    issue.attempts === 0 ? '' : ` · ${String(issue.attempts)} ${issue.attempts === 1 ? 'attempt' : 'attempts'}`;
  // Where nothing at all is known, the line of the Spec says so once.
  const sum = issue.spending === undefined ? '' : formatSpent({ sum: issue.spending, budgets: issue.budgets ?? [] });
  const spent = sum === '' ? '' : ` · ${sum}`;
  const waits = waitsText(issue, asking);
  return [
    `${symbols[issue.state] ?? ' '} ${issue.id.padEnd(width)}  wave ${String(issue.wave)}  ${`${issue.state}${phase}`.padEnd(12)}${attempts}${spent}${waits}  ${printable(issue.title)}`,
    ...(issue.question === undefined ? [] : [`    asks: ${printable(issue.question)}`]),
    ...(issue.worktree === undefined || issue.state === 'ready' ? [] : [`    worktree: ${printable(issue.worktree)}`]),
  ];
}

function waitsText({ waitsFor, waitsForLease: holder }: IssueStatusJson, asking: ReadonlySet<IssueId>): string {
  if (holder !== undefined) return ` · ${printable(waitsForLease(holder))}`;
  if (waitsFor === undefined) return '';
  return ` · waits for ${waitsFor}${asking.has(waitsFor) ? ', which needs a human' : ''}`;
}

function nextLines(spec: SpecStatusJson): readonly string[] {
  if (spec.state === 'done')
    return [`take it: giro implement ${spec.spec} checks the proof and prints the commands, tried`];
  const asking = spec.issues.filter((issue) => issue.state === 'needs-human').map((issue) => issue.id);
  const why =
    asking.length === 0
      ? []
      : [`asks for you: ${asking.join(', ')} (details: giro status ${spec.spec}/${asking[0] ?? ''})`];
  return spec.running === null && spec.stopFile === undefined ? [...why, `next: giro implement ${spec.spec}`] : why;
}

/** One Issue that asks: what a person needs to answer it, and where the rest is. */
export function askingText(spec: SpecStatusJson, issue: IssueStatusJson, packet: Packet): string {
  const story = `git show ${issue.branch ?? `giro/${spec.spec}`}:${specsFolder}/${spec.spec}/issues/${issue.id}.md`;
  const rows = issueLines(issue, tableOf(spec)).filter((line) => !line.startsWith('    asks: '));
  const lines = [...rows, '', packetText(packet), '', `the whole story: ${story}`];
  return `${lines.join('\n')}\n`;
}

/** One Issue with its whole History, as its markdown has it. */
export function issueText(spec: SpecStatusJson, issue: IssueStatusJson, history: string): string {
  const shown = history === '' ? 'no attempt yet' : history.trimEnd();
  return `${issueLines(issue, tableOf(spec)).join('\n')}\n\n${shown.split('\n').map(printable).join('\n')}\n`;
}
