/**
 * A proof as an in-toto Statement (https://in-toto.io/Statement/v1): the subject is the commit, the predicate the verdicts. Described
 * in docs/proof.md. Pure: the same commit always gives the same bytes.
 */
import type { GateRecord, IssueProof, Proof, SpecProof } from '../record.js';

const statementType = 'https://in-toto.io/Statement/v1';
const predicateType = 'urn:giro:proof:v1';

/** Writes the statement as JSON that people can read too. */
export function renderStatement(parts: Proof): string {
  return `${JSON.stringify(statementOf(parts), null, 2)}\n`;
}

/** Composes the statement. */
export function statementOf(parts: Proof): Readonly<Record<string, unknown>> {
  const name = parts.kind === 'spec' ? `giro/${parts.spec}` : `giro/${parts.spec}/${parts.issue}`;
  return {
    _type: statementType,
    subject: [{ name, digest: { gitCommit: parts.commit } }],
    predicateType,
    predicate: parts.kind === 'spec' ? specPredicate(parts) : issuePredicate(parts),
  };
}

function specPredicate(parts: SpecProof): Readonly<Record<string, unknown>> {
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

function issuePredicate(parts: IssueProof): Readonly<Record<string, unknown>> {
  return { ...commonPredicate(parts), issue: parts.issue, ...issueVerdicts(parts) };
}

function commonPredicate({ spec, tree, codeTree, base, giro, at }: Proof): Readonly<Record<string, unknown>> {
  return { giro, at, spec, base, tree, codeTree };
}

function issueVerdicts(issue: IssueProof): Readonly<Record<string, unknown>> {
  return {
    attempts: issue.attempts,
    judged: issue.judged.map(gateOf),
    integrated: issue.integrated.map(gateOf),
    waivers: issue.waivers,
  };
}

/** Keys that say nothing are left out. */
function gateOf(gate: GateRecord): Readonly<Record<string, unknown>> {
  const { verdict, cached, exit, durationMs, tests, definition, log, prompt, notes } = gate;
  const known = { exit, durationMs, tests, definition, log, prompt };
  return {
    gate: gate.gate,
    verdict,
    ...(gate.waived ? { waived: true } : {}),
    ...(cached ? { cached } : {}),
    ...Object.fromEntries(Object.entries(known).filter(([, value]) => value !== null)),
    ...(notes.length === 0 ? {} : { notes }),
  };
}
