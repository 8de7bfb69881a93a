/** The packet of an escalation: what a person needs to answer in a minute. Pure. */
import type { EscalationCause, SpecCause } from '../event.js';
import type { Finding, IssueId, SpecSlug } from '../issue.js';
import { findingId } from '../issue.js';

/** Everything a packet is made from. */
export interface PacketParts {
  readonly spec: SpecSlug;
  readonly issue: IssueId;
  readonly title: string;
  readonly branch: string;
  readonly cause: EscalationCause;
  readonly attempts: number;
  readonly why: string;
  readonly findings: readonly Finding[];
  /** What the worker itself asked. */
  readonly asked?: string;
}

/** A packet: its lines for History, and the question alone. */
export interface Packet {
  readonly question: string;
  readonly lines: readonly string[];
}

/** Builds the packet of one Issue. */
export function issuePacket(parts: PacketParts): Packet {
  const question = questionOf(parts);
  return {
    question,
    lines: [
      `asked for: ${parts.title}`,
      `tried: ${String(parts.attempts)} ${parts.attempts === 1 ? 'attempt' : 'attempts'}; ${parts.why}`,
      ...evidence(parts.findings),
      `question: ${question}`,
      `option: edit docs/specs/${parts.spec}/issues/${parts.issue}.md and run again; the text goes to the next attempt`,
      `option: commit a fix on the branch ${parts.branch}, or change the files in its worktree, and run again; it is judged without an agent`,
      `option: set state: wontfix in the Issue file, if nothing depends on it`,
      `to edit it: git restore --source=giro/${parts.spec} -- docs/specs/${parts.spec}`,
      `then: giro implement ${parts.spec}`,
    ],
  };
}

/** Everything the packet of a Spec is made from. */
export interface SpecPacketParts {
  readonly spec: SpecSlug;
  readonly title: string;
  readonly cause: SpecCause;
  readonly why: string;
  readonly findings: readonly Finding[];
  /** What the planner itself asks. */
  readonly questions: readonly string[];
}

/** Builds the packet of a Spec as a whole. */
export function specPacket(parts: SpecPacketParts): Packet {
  const question = specQuestion(parts);
  const folder = `docs/specs/${parts.spec}`;
  return {
    question,
    lines: [
      `asked for: ${parts.title}`,
      `tried: ${parts.why}`,
      ...evidence(parts.findings),
      `question: ${question}`,
      ...specOptions(parts.cause, parts.spec, folder),
      `to edit what was planned: git restore --source=giro/${parts.spec} -- ${folder}`,
      `then: giro implement ${parts.spec}`,
    ],
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
    case 'cannot-run-here':
    case 'operation-failures':
      return `${first}. Can you repair what is around it, and run again?`;
  }
}

function specOptions(cause: SpecCause, spec: SpecSlug, folder: string): readonly string[] {
  switch (cause) {
    case 'questions':
    case 'plan-rejected':
      return [
        `option: answer in ${folder}/SPEC.md and run again; the planner reads it`,
        `option: write the Issues yourself in ${folder}/issues/ and run again; then nothing is planned`,
      ];
    case 'rounds-spent':
    case 'same-findings':
    case 'validate-red':
      return [
        `option: add an Issue in ${folder}/issues/ and run again; it is implemented, then all is validated`,
        `option: say in ${folder}/SPEC.md what is missing and run again; the rounds begin anew`,
        'option: mend the gate in giro.toml and run again; the tip is validated with it',
      ];
    case 'stack-conflict':
    case 'stack-red':
      return [
        `option: merge them yourself in a worktree of giro/${folder.split('/').at(-1) ?? ''} and run again; that commit is built upon`,
        'option: mend one of them in its own Spec, prove it and run again; its new tip is taken along',
      ];
    case 'baseline-red':
      return [
        `option: commit the repair on your branch, delete giro/${spec} while nothing has landed there (git branch -D giro/${spec}), and run again: the Spec starts from your commit`,
        `option: bring the repair onto giro/${spec} yourself, and run again`,
        'option: mend the gate in giro.toml and run again',
        'option: set [evidence] baseline = "allow" in giro.toml; then failures of the base are told by name and only new ones count',
      ];
    case 'budget-spent':
    case 'cannot-run-here':
    case 'operation-failures':
      return ['option: repair it and run again; nothing that is done is done again'];
  }
}

function evidence(findings: readonly Finding[]): readonly string[] {
  return findings
    .slice(0, 10)
    .map((finding) => `evidence [${findingId(finding)}]: ${place(finding)}${finding.message}`);
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

function place(finding: Finding): string {
  if (finding.file === undefined) return '';
  return finding.line === undefined ? `${finding.file}: ` : `${finding.file}:${String(finding.line)}: `;
}
