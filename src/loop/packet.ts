/** Builds the packets of escalations: what was asked, what was tried, the evidence, the question, the ways on. Pure. */
import type { EscalationCause, SpecCause } from '../event.js';
import type { Finding, IssueId, SpecSlug } from '../issue.js';
import { findingId } from '../issue.js';
import type { Evidence, Packet, PacketOption } from '../packet.js';
import type { ChangedFile } from './ports.js';

/** Everything the packet of an Issue is made from. */
export interface PacketParts {
  readonly spec: SpecSlug;
  readonly issue: IssueId;
  readonly title: string;
  readonly branch: string;
  readonly cause: EscalationCause;
  readonly attempts: number;
  readonly why: string;
  /** One line for each attempt. */
  readonly tried: readonly string[];
  readonly findings: readonly Finding[];
  /** Ids of the findings that a person can accept: those of gates and guards that came to a verdict. */
  readonly acceptable: ReadonlySet<string>;
  readonly changes: readonly ChangedFile[];
  /** Short name of the commit that the work starts from. */
  readonly base: string;
  readonly logs: readonly string[];
  /** What the worker itself asked. */
  readonly asked?: string;
}

/** Builds the packet of one Issue. */
export function issuePacket(parts: PacketParts): Packet {
  const { findings, changes, acceptable } = parts;
  return {
    askedFor: parts.title,
    tried: `${count(parts.attempts, 'attempt')}; ${parts.why}`,
    attempts: parts.tried.slice(-mostAttempts),
    ...evidenceOf(findings, acceptable),
    changed: changes.length === 0 ? null : diffStat(changes),
    see: changes.length === 0 ? null : `git diff ${parts.base} ${parts.branch} -- . ':!docs/specs'`,
    logs: parts.logs.slice(0, mostLogs),
    question: questionOf(parts),
    options: issueOptions(parts),
    next: `giro implement ${parts.spec}`,
  };
}

/** Everything the packet of a Spec is made from. */
export interface SpecPacketParts {
  readonly spec: SpecSlug;
  readonly title: string;
  readonly cause: SpecCause;
  readonly why: string;
  readonly findings: readonly Finding[];
  /** Ids of the findings that a person can accept. */
  readonly acceptable: ReadonlySet<string>;
  readonly logs: readonly string[];
  /** What the planner itself asks. */
  readonly questions: readonly string[];
}

/** Builds the packet of a Spec as a whole. */
export function specPacket(parts: SpecPacketParts): Packet {
  const { spec, findings, acceptable } = parts;
  const { evidence, more } = evidenceOf(findings, acceptable);
  return {
    askedFor: parts.title,
    tried: parts.why,
    attempts: [],
    evidence,
    more,
    changed: null,
    see: `git log --first-parent --stat giro/${spec}`,
    logs: parts.logs.slice(0, mostLogs),
    question: specQuestion(parts),
    options: [...specOptions(parts.cause, spec), ...acceptOption(spec, evidence, 'this Spec')],
    next: `giro implement ${spec}`,
  };
}

function specQuestion(parts: SpecPacketParts): string {
  const first = parts.findings[0]?.message ?? parts.why;
  switch (parts.cause) {
    case 'questions':
      return parts.questions.length === 1
        ? (parts.questions[0] ?? first)
        : parts.questions.map((question, index) => `${String(index + 1)}. ${question}`).join(' ');
    case 'plan-rejected':
      return `${first}. What must SPEC.md say so that it can be planned, or which Issues are they?`;
    case 'rounds-spent':
    case 'validate-red':
      return `${first}. Which Issue is missing, or which gate is wrong?`;
    case 'same-findings':
      return `${first}, as in the round before. What do the gap Issues not see?`;
    case 'baseline-red':
      return `${first}, before any work. Can you repair the base?`;
    case 'budget-spent':
      return `${first}. May it go on?`;
    case 'stack-conflict':
      return `${first}. How do the Specs that it depends on go together?`;
    case 'stack-red':
      return `${first}, with what the Specs that it depends on have done and before any work of its own. What is wrong there?`;
    case 'base-conflict':
      return `${first}. How does what moved there go together with the Spec?`;
    case 'base-red':
      return `${first}, with what moved on your branch. What is wrong there?`;
    case 'cannot-run-here':
    case 'operation-failures':
      return `${first}. Can you repair what is around it, and run again?`;
  }
}

function specOptions(cause: SpecCause, spec: SpecSlug): readonly PacketOption[] {
  const folder = `docs/specs/${spec}`;
  const say: PacketOption = { act: `giro answer ${spec} "<text>"`, leadsTo: 'the planner is told the text' };
  const edit = `git restore --source=giro/${spec} -- ${folder}`;
  switch (cause) {
    case 'questions':
    case 'plan-rejected':
      return [
        say,
        { act: `say it in ${folder}/SPEC.md`, leadsTo: 'the planner reads it' },
        { act: `write the Issues yourself in ${folder}/issues/`, leadsTo: 'then nothing is planned' },
      ];
    case 'rounds-spent':
    case 'same-findings':
    case 'validate-red':
      return [
        { ...say, leadsTo: 'the planner is told the text; the rounds begin anew' },
        {
          act: `add an Issue in ${folder}/issues/ (${edit} brings the planned ones here)`,
          leadsTo: 'it is implemented, then all is validated',
        },
        { act: 'mend the gate in giro.toml', leadsTo: 'the tip is validated with it' },
      ];
    case 'stack-conflict':
    case 'stack-red':
      return [
        { act: `merge them yourself in a worktree of giro/${spec}`, leadsTo: 'that commit is built upon' },
        { act: 'mend one of them in its own Spec, and prove it', leadsTo: 'its new tip is taken along' },
      ];
    case 'base-conflict':
    case 'base-red':
      return movedOptions(spec);
    case 'baseline-red':
      return [
        {
          act: 'commit the repair on your branch',
          leadsTo: 'the Spec starts from your commit, as long as nothing has landed',
        },
        {
          act: `when something has landed, with nothing uncommitted: git switch giro/${spec} && git merge - && git switch -`,
          leadsTo: 'the Spec goes on with your repair in it',
        },
        { act: 'mend the gate in giro.toml', leadsTo: 'the base is judged with it' },
        {
          act: 'set [evidence] baseline = "allow" in giro.toml',
          leadsTo: 'failures of the base are told by name, and only new ones count',
        },
      ];
    case 'budget-spent':
    case 'cannot-run-here':
    case 'operation-failures':
      return [{ act: 'repair it, and run again', leadsTo: 'nothing that is done is done again' }];
  }
}

function movedOptions(spec: SpecSlug): readonly PacketOption[] {
  return [
    {
      act: `merge them yourself, with nothing uncommitted: git switch giro/${spec} && git merge - && git switch -`,
      leadsTo: 'that commit is built upon',
    },
    { act: 'mend it on your branch', leadsTo: 'what is there then is taken along' },
    { act: 'set [integrate] base = "never" in giro.toml', leadsTo: 'the Spec goes on without it' },
  ];
}

const mostAttempts = 8;
const mostEvidence = 8;
const mostLogs = 6;
const mostFiles = 6;
const tailLines = 12;
/** Findings that show the end of their output: the others have it in the entries above. */
const withTail = 3;

function evidenceOf(
  findings: readonly Finding[],
  acceptable: ReadonlySet<string>,
): { readonly evidence: readonly Evidence[]; readonly more: number } {
  const shown = findings.slice(0, mostEvidence);
  const evidence = shown.map((finding, index): Evidence => {
    const id = findingId(finding);
    const output = (finding.detail ?? '').split('\n').filter((line) => line.trim() !== '');
    return {
      id: acceptable.has(id) ? id : null,
      text: `${place(finding)}${finding.message}`,
      tail: index < withTail ? output.slice(-tailLines) : [],
    };
  });
  return { evidence, more: findings.length - shown.length };
}

function issueOptions(parts: PacketParts): readonly PacketOption[] {
  const target = `${parts.spec}/${parts.issue}`;
  const file = `docs/specs/${parts.spec}/issues/${parts.issue}.md`;
  const { evidence } = evidenceOf(parts.findings, parts.acceptable);
  return [
    { act: `giro answer ${target} "<text>"`, leadsTo: 'the next attempt is told the text; the budget starts again' },
    { act: `giro answer ${target} --retry`, leadsTo: 'tried again as it is; the budget starts again' },
    ...acceptOption(target, evidence, 'this Issue'),
    {
      act: `commit a fix on the branch ${parts.branch}, or change the files in its worktree`,
      leadsTo: 'your work is judged and integrated without an agent',
    },
    {
      act: `edit ${file} (git restore --source=giro/${parts.spec} -- ${file} brings it here)`,
      leadsTo: 'the next attempt is told the new text',
    },
    { act: `giro answer ${target} --wontfix`, leadsTo: 'given up; refused while another Issue depends on it' },
  ];
}

/** The ids stand beside the evidence too: whoever accepts something should have read it. */
function acceptOption(target: string, evidence: readonly Evidence[], what: string): readonly PacketOption[] {
  const ids = [...new Set(evidence.flatMap(({ id }) => id ?? []))];
  if (ids.length === 0) return [];
  const leadsTo =
    ids.length === 1
      ? `this finding no longer blocks ${what}: a waiver, named in the proof`
      : `these findings no longer block ${what}: waivers, named in the proof; leave out what is to block`;
  return [{ act: `giro answer ${target} --accept ${ids.join(' ')}`, leadsTo }];
}

function questionOf(parts: PacketParts): string {
  if (parts.asked !== undefined && parts.asked.trim() !== '') return parts.asked.trim();
  const first = parts.findings[0]?.message ?? parts.why;
  switch (parts.cause) {
    case 'budget-spent':
      return `${first}. What should the next attempt do differently?`;
    case 'no-progress':
      return `${parts.why}: ${first}. What is missing in the Issue?`;
    case 'operation-failures':
    case 'cannot-run-here':
      return `${first}. Can you repair what is around it, and run again?`;
    case 'blocked':
      return `The worker says it is blocked: ${first}. How should it go on?`;
    case 'lane-held':
      return `${first}. Can you free the branch, and run again?`;
  }
}

function diffStat(changes: readonly ChangedFile[]): string {
  const insertions = changes.reduce((sum, change) => sum + change.insertions, 0);
  const deletions = changes.reduce((sum, change) => sum + change.deletions, 0);
  const largest = [...changes].sort((left, right) => sizeOf(right) - sizeOf(left)).slice(0, mostFiles);
  const files = largest.map(({ path, ...size }) => `${path} ${signed(size)}`);
  const more = changes.length - largest.length;
  const rest = more > 0 ? ` and ${String(more)} more` : '';
  return `${count(changes.length, 'file')} ${signed({ insertions, deletions })}: ${files.join(', ')}${rest}`;
}

function sizeOf(change: Pick<ChangedFile, 'insertions' | 'deletions'>): number {
  return change.insertions + change.deletions;
}

function signed({ insertions, deletions }: Pick<ChangedFile, 'insertions' | 'deletions'>): string {
  return `+${String(insertions)} -${String(deletions)}`;
}

function count(amount: number, noun: string): string {
  return `${String(amount)} ${noun}${amount === 1 ? '' : 's'}`;
}

function place(finding: Finding): string {
  if (finding.file === undefined) return '';
  return finding.line === undefined ? `${finding.file}: ` : `${finding.file}:${String(finding.line)}: `;
}
