/** Checks a proof against the repository and giro.toml as they are now: nothing is believed that can be computed. */
import { definitionHash } from '../gates/definition.js';
import { dueGates } from '../gates/gate.js';
import type { Oid } from '../issue.js';
import { shortOid } from '../issue.js';
import { shortHash } from '../loop/notes.js';
import { specGates } from '../loop/spec-loop.js';
import { printable } from '../platform/text.js';
import type { GateDefinition, Policy } from '../policy.js';
import { renderStatement } from '../report/proof.js';
import { readNote } from '../store/notes.js';
import type { GateRecord, IssueProof, Proof, SpecProof } from '../record.js';
import { claimedTree } from '../store/proof.js';
import { codeTree } from '../store/tree.js';
import type { Git } from '../worktree/git-types.js';

/** One thing that was checked, with what was found. */
export interface ProofCheck {
  readonly what: string;
  readonly holds: boolean;
  /** What differs, or what was compared. */
  readonly detail: string;
  /** The command that leads on, where it is not another run. */
  readonly fix?: string;
}

/** Says that a commit carries exactly the code tree that its verdicts are about. */
export async function checkTree(git: Git, proof: Proof): Promise<ProofCheck> {
  const what = proof.kind === 'spec' ? 'the validated tree' : `the landed tree of ${proof.issue}`;
  if (proof.codeTree === proof.claimed) return { what, holds: true, detail: `tree ${shortOid(proof.codeTree)}` };
  return { what, holds: false, detail: await difference(git, claimedTree(proof), proof.codeTree) };
}

/** Says that a tip still has the code tree that was verified last. */
export async function checkTip(git: Git, tip: Oid, proof: Proof): Promise<ProofCheck> {
  const what = 'the tip';
  const now = await codeTree(git, (await git.readCommit(tip)).tree);
  if (now === proof.claimed) return { what, holds: true, detail: `${shortOid(tip)} has the proven tree` };
  return { what, holds: false, detail: await difference(git, claimedTree(proof), now) };
}

const namedFiles = 5;

async function difference(git: Git, proven: Oid | null, now: Oid): Promise<string> {
  const trees = `tree ${shortOid(now)} is not the proven ${proven === null ? 'one' : shortOid(proven)}`;
  const changes = proven === null ? null : await git.diffTrees(proven, now).catch(() => null);
  if (changes === null) return `${trees}, which this repository does not have`;
  const names = changes.slice(0, namedFiles).map(({ path, status }) => `${status} ${printable(path)}`);
  const more = changes.length - names.length;
  return `${trees}: ${names.join(', ')}${more > 0 ? ` and ${String(more)} more` : ''}`;
}

/** Says that every gate of an entry passed, and that there was one. */
export function checkVerdicts(what: string, gates: readonly GateRecord[]): ProofCheck {
  const red = gates.filter(({ verdict, waived }) => verdict !== 'pass' && !waived).map(({ gate }) => gate);
  if (gates.length === 0) return { what, holds: false, detail: 'no verdict stands in its History' };
  if (red.length > 0) return { what, holds: false, detail: `red: ${red.join(', ')}` };
  return { what, holds: true, detail: gates.map(shown).join(', ') };
}

function shown({ gate, tests, exit, cached, waived }: GateRecord): string {
  const facts = [
    ...(exit === null ? [] : [`exit ${String(exit)}`]),
    ...(tests === null ? [] : [tests]),
    ...(waived ? ['red, waived'] : []),
  ];
  const how = cached ? ['same tree, verified before', ...facts] : facts;
  return how.length === 0 ? gate : `${gate} (${how.join(', ')})`;
}

/** Says that giro.toml still demands what was demanded when the Spec was validated. */
export function checkDefinitions(policy: Policy, proof: SpecProof): ProofCheck {
  const due = new Map(
    [...specGates(policy), ...dueGates(policy.gates, 'integration', [])].map((gate) => [gate.name, gate]),
  );
  const recorded = new Map(proof.definitions.map(({ gate, definition }) => [gate, definition]));
  const validated = new Set(proof.validated.map(({ gate }) => gate));
  const problems = [
    ...[...due.values()].flatMap((gate) => definitionProblem(gate, recorded)),
    ...[...validated].filter((gate) => !due.has(gate)).map((gate) => `${gate} is not due any more`),
    ...specGates(policy)
      .filter((gate) => recorded.has(gate.name) && !validated.has(gate.name))
      .map((gate) => `${gate.name} was not due then`),
  ];
  const what = 'the gates of giro.toml';
  if (problems.length > 0) return { what, holds: false, detail: problems.join('; ') };
  const detail = [`${[...due.keys()].join(', ')}: as they were`, ...otherwise(policy, { due, recorded })].join('; ');
  return { what, holds: true, detail };
}

/** Gates of Issues alone judged work that is done: what they demand now changes nothing of it, and is told. */
function otherwise(
  policy: Policy,
  known: { readonly due: ReadonlyMap<string, GateDefinition>; readonly recorded: ReadonlyMap<string, string> },
): readonly string[] {
  const others = policy.gates.filter(({ name }) => !known.due.has(name));
  return others
    .filter((gate) => definitionProblem(gate, known.recorded).length > 0)
    .map(({ name }) => `${name}, due on Issues alone, demands something else now`);
}

function definitionProblem(gate: GateDefinition, recorded: ReadonlyMap<string, string>): readonly string[] {
  const before = recorded.get(gate.name);
  const now = shortHash(definitionHash(gate));
  if (before === undefined) return [`${gate.name} is new since`];
  return before === now ? [] : [`${gate.name} demands something else now (${now}, was ${before})`];
}

/** The same for the landing of one Issue, by what its gates were bound to. */
export function checkIssueDefinitions(policy: Policy, proof: IssueProof): ProofCheck {
  const what = `the gates of giro.toml for ${proof.issue}`;
  const recorded = new Map(
    proof.integrated.flatMap(({ gate, definition }) => (definition === null ? [] : [[gate, definition] as const])),
  );
  const due = dueGates(policy.gates, 'integration', []);
  const problems = due.flatMap((gate) => definitionProblem(gate, recorded));
  if (problems.length > 0) return { what, holds: false, detail: problems.join('; ') };
  return { what, holds: true, detail: `${due.map(({ name }) => name).join(', ')}: as they were` };
}

/** Says that the notes tell what the commits tell; a missing one is no contradiction. */
export async function checkNotes(git: Git, proofs: readonly Proof[]): Promise<ProofCheck> {
  const what = 'the notes';
  let missing = 0;
  for (const proof of proofs) {
    const note = await readNote(git, proof.commit);
    if (note === null) missing += 1;
    else if (note !== renderStatement(proof)) return { what, holds: false, ...noteProblem(proof, note) };
  }
  const there = proofs.length - missing;
  const detail = `${String(there)} as the commits say${missing === 0 ? '' : `, ${String(missing)} missing`}`;
  return { what, holds: true, detail };
}

/** Says where a note differs, and how it is made anew: giro leaves it as it is, since it may be evidence. */
function noteProblem(proof: Proof, note: string): Pick<ProofCheck, 'detail' | 'fix'> {
  const commit = shortOid(proof.commit);
  const detail = `the note of ${commit} says something else than its commit${noteDifference(proof, note)}`;
  return { detail, fix: `git notes --ref giro remove ${commit} && giro proof ${proof.spec}` };
}

function noteDifference(proof: Proof, note: string): string {
  try {
    return printable(firstDifference('', JSON.parse(note), JSON.parse(renderStatement(proof))) ?? '');
  } catch {
    return ' (it is no JSON)';
  }
}

/** Where two values differ first, and how; `null`: they do not. */
function firstDifference(path: string, found: unknown, expected: unknown): string | null {
  if (isRecord(found) && isRecord(expected)) {
    for (const key of new Set([...Object.keys(expected), ...Object.keys(found)])) {
      const below = firstDifference(path === '' ? key : `${path}.${key}`, found[key], expected[key]);
      if (below !== null) return below;
    }
    return null;
  }
  return found === expected ? null : ` (${path}: ${brief(found)}, the commit says ${brief(expected)})`;
}

/** Lists too: their places are their keys. */
function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null;
}

function brief(value: unknown): string {
  const text = value === undefined ? 'nothing' : JSON.stringify(value);
  return text.length <= 60 ? text : `${text.slice(0, 60)}…`;
}
