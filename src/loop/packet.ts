/** The packet of an escalation: what a person needs to answer in a minute. Pure. */
import type { EscalationCause } from '../event.js';
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
      ...parts.findings
        .slice(0, 10)
        .map((finding) => `evidence [${findingId(finding)}]: ${place(finding)}${finding.message}`),
      `question: ${question}`,
      `option: edit docs/specs/${parts.spec}/issues/${parts.issue}.md and run again; the text goes to the next attempt`,
      `option: commit a fix on the branch ${parts.branch}, or change the files in its worktree, and run again; it is judged without an agent`,
      `option: set state: wontfix in the Issue file, if nothing depends on it`,
      `to edit it: git restore --source=giro/${parts.spec} -- docs/specs/${parts.spec}`,
      `then: giro implement ${parts.spec}`,
    ],
  };
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
