/**
 * A proof as an in-toto Statement (https://in-toto.io/Statement/v1): the subject is the commit, the predicate the verdicts. Described
 * in docs/proof.md. Pure: the same commit always gives the same bytes.
 */

/** One gate's verdict in a statement. */
export interface GateStatement {
  readonly gate: string;
  readonly verdict: 'pass' | 'fail';
  readonly cached: boolean;
  readonly exit: number | null;
  readonly durationMs: number | null;
  readonly tests: string | null;
  readonly definition: string | null;
  readonly log: string | null;
  readonly prompt: string | null;
  readonly notes: readonly string[];
}

/** What the statement of any proof is made from. */
interface StatementCommon {
  readonly spec: string;
  readonly commit: string;
  readonly tree: string;
  readonly codeTree: string;
  readonly base: string;
  readonly giro: string;
  readonly at: string;
  readonly waivers: readonly string[];
}

/** What the statement of one Issue is made from. */
export interface IssueStatement extends StatementCommon {
  readonly kind: 'issue';
  readonly issue: string;
  readonly attempts: number;
  readonly judged: readonly GateStatement[];
  readonly integrated: readonly GateStatement[];
}

/** What the statement of a Spec is made from. */
export interface SpecStatement extends StatementCommon {
  readonly kind: 'spec';
  readonly digest: string;
  readonly validated: readonly GateStatement[];
  readonly definitions: readonly { readonly gate: string; readonly definition: string; readonly demand: string }[];
  readonly issues: readonly IssueStatement[];
}

/** What any statement is made from. */
export type StatementParts = IssueStatement | SpecStatement;

const statementType = 'https://in-toto.io/Statement/v1';
const predicateType = 'urn:giro:proof:v1';

/** Writes the statement as JSON that people can read too. */
export function renderStatement(parts: StatementParts): string {
  return `${JSON.stringify(statementOf(parts), null, 2)}\n`;
}

/** Composes the statement. */
export function statementOf(parts: StatementParts): Readonly<Record<string, unknown>> {
  const name = parts.kind === 'spec' ? `giro/${parts.spec}` : `giro/${parts.spec}/${parts.issue}`;
  return {
    _type: statementType,
    subject: [{ name, digest: { gitCommit: parts.commit } }],
    predicateType,
    predicate: parts.kind === 'spec' ? specPredicate(parts) : issuePredicate(parts),
  };
}

function specPredicate(parts: SpecStatement): Readonly<Record<string, unknown>> {
  return {
    ...commonPredicate(parts),
    gates: parts.definitions.map(({ gate, definition, demand }) => ({ gate, definition, demand })),
    gatesDigest: parts.digest,
    validated: parts.validated.map(gateOf),
    issues: parts.issues.map((issue) => ({
      issue: issue.issue,
      commit: issue.commit,
      codeTree: issue.codeTree,
      ...issueVerdicts(issue),
    })),
    waivers: parts.waivers,
  };
}

function issuePredicate(parts: IssueStatement): Readonly<Record<string, unknown>> {
  return { ...commonPredicate(parts), issue: parts.issue, ...issueVerdicts(parts) };
}

function commonPredicate({ spec, tree, codeTree, base, giro, at }: StatementParts): Readonly<Record<string, unknown>> {
  return { giro, at, spec, base, tree, codeTree };
}

function issueVerdicts(issue: IssueStatement): Readonly<Record<string, unknown>> {
  return {
    attempts: issue.attempts,
    judged: issue.judged.map(gateOf),
    integrated: issue.integrated.map(gateOf),
    waivers: issue.waivers,
  };
}

/** Keys that say nothing are left out. */
function gateOf(gate: GateStatement): Readonly<Record<string, unknown>> {
  const { verdict, cached, exit, durationMs, tests, definition, log, prompt, notes } = gate;
  const known = { exit, durationMs, tests, definition, log, prompt };
  return {
    gate: gate.gate,
    verdict,
    ...(cached ? { cached } : {}),
    ...Object.fromEntries(Object.entries(known).filter(([, value]) => value !== null)),
    ...(notes.length === 0 ? {} : { notes }),
  };
}
