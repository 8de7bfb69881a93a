/**
 * What `giro/<spec>` proves, read back from its commits alone: their trailers, and the History in their files. There is no other
 * record; the note of a commit is a rendering of this.
 */
import { historyOf } from '../config/splice.js';
import { failed, ok, type Result } from '../failure.js';
import { compareIssueIds, parseIssueId, parseOid, type IssueId, type Oid, type SpecSlug } from '../issue.js';
import type { IssueProof, Proof, ProofCommon, SpecProof } from '../record.js';
import { specsFolder } from '../spec.js';
import type { CommitInfo, Git } from '../worktree/git-types.js';
import { waiversOf } from './findings.js';
import { lastAttempt, readHistory, type HistoryEntry } from './history.js';
import { readDefinitions, readGateRecords, timeOf } from './proof-lines.js';
import { readIssueText } from './read.js';
import { codeTree } from './tree.js';
import { checkpointOf, trailer } from './trailers.js';

type ProofGit = Pick<Git, 'readCommit' | 'readPath' | 'readBlob' | 'editTree' | 'writeBlob' | 'emptyTree'>;

/** The newest validated commit of a branch and what stands above it, oldest last. */
export interface FoundProof {
  /** `null`: nothing on the branch was ever validated. */
  readonly validated: CommitInfo | null;
  readonly above: readonly CommitInfo[];
}

/** Finds the commit that carries the proof of a Spec. */
export async function findValidated(git: Pick<Git, 'readCommit'>, tip: Oid): Promise<FoundProof> {
  const above: CommitInfo[] = [];
  for (let next: Oid | undefined = tip; next !== undefined;) {
    const commit: CommitInfo = await git.readCommit(next);
    if (trailer(commit.message, 'Giro-Validated') !== undefined) return { validated: commit, above };
    const base = trailer(commit.message, 'Giro-Base');
    above.push(commit);
    // Below the snapshot there is only the user's own history.
    if (checkpointOf(commit.message) === 'snapshot' && base !== undefined) break;
    next = commit.parents[0];
  }
  return { validated: null, above };
}

/** Reads the proof of a Spec from its validated commit. */
export async function readSpecProof(
  git: Git,
  request: { readonly spec: SpecSlug; readonly commit: CommitInfo },
): Promise<Result<SpecProof, string>> {
  const { spec, commit } = request;
  const [claimed = '', digest = ''] = (trailer(commit.message, 'Giro-Validated') ?? '').split(' ');
  const text = await readIssueText(git, commit.oid, `${specsFolder}/${spec}/SPEC.md`);
  const history = text === null ? '' : historyOf(text);
  const entry = readHistory(history).findLast(({ kind }) => kind === 'validated');
  if (entry === undefined) return failed(`${commit.oid} says it was validated, but SPEC.md has no entry of that`);
  return ok({
    kind: 'spec',
    ...(await commonOf(git, { spec, commit, claimed, entry })),
    digest,
    validated: readGateRecords(entry.text),
    definitions: readDefinitions(entry.text),
    issues: await landedProofs(git, spec, commit),
    waivers: waiversIn(history),
  });
}

/** Those that the newest verdicts stand on, each with what it says. */
function waiversIn(history: string): readonly string[] {
  return waiversOf(readHistory(history)).map(
    ({ finding, by, what }) => `${finding}: ${what}${by === 'config' ? ' (by giro.toml)' : ''}`,
  );
}

/** Reads the proof of every landed Issue that a commit's first parents hold, the newest landing of each. */
export async function landedProofs(git: Git, spec: SpecSlug, from: CommitInfo): Promise<readonly IssueProof[]> {
  const found = new Map<IssueId, IssueProof>();
  for (let next: CommitInfo | null = from; next !== null;) {
    const commit: CommitInfo = next;
    const issue = parseIssueId(trailer(commit.message, 'Giro-Issue') ?? '');
    const checkpoint = checkpointOf(commit.message);
    if (checkpoint === 'integrated' && issue !== undefined && !found.has(issue)) {
      const proof = await readIssueProof(git, { spec, issue, commit });
      if (proof !== null) found.set(issue, proof);
    }
    const parent: Oid | undefined = commit.parents[0];
    next = checkpoint === 'snapshot' || parent === undefined ? null : await git.readCommit(parent);
  }
  return [...found.values()].sort((left, right) => compareIssueIds(left.issue, right.issue));
}

async function readIssueProof(
  git: Git,
  request: { readonly spec: SpecSlug; readonly issue: IssueId; readonly commit: CommitInfo },
): Promise<IssueProof | null> {
  const { spec, issue, commit } = request;
  const bytes = await git.readOnce(commit.oid, `${specsFolder}/${spec}/issues/${issue}.md`);
  if (bytes === null) return null;
  const history = historyOf(bytes.toString('utf8'));
  const entries = readHistory(history);
  const entry = entries.findLast(({ kind }) => kind === 'integrated');
  if (entry === undefined) return null;
  const judged = entries.findLast((one) => one.kind === 'attempt' && one.verdict === 'pass');
  const claimed = trailer(commit.message, 'Giro-Code-Tree') ?? '';
  return {
    kind: 'issue',
    ...(await commonOf(git, { spec, commit, claimed, entry })),
    issue,
    attempts: lastAttempt(entries),
    judged: judged === undefined ? [] : readGateRecords(judged.text),
    integrated: readGateRecords(entry.text),
    waivers: waiversIn(history),
  };
}

async function commonOf(
  git: ProofGit,
  of: {
    readonly spec: SpecSlug;
    readonly commit: CommitInfo;
    readonly claimed: string;
    readonly entry: HistoryEntry;
  },
): Promise<ProofCommon> {
  const { spec, commit, claimed, entry } = of;
  return {
    spec,
    commit: commit.oid,
    tree: commit.tree,
    codeTree: await codeTree(git, commit.tree),
    claimed,
    base: trailer(commit.message, 'Giro-Base') ?? '',
    giro: trailer(commit.message, 'Giro-Version') ?? '',
    at: timeOf(entry.text),
  };
}

/** The code tree a proof names, as far as it is an object name at all. */
export function claimedTree(proof: Proof): Oid | null {
  return /^(?:[0-9a-f]{40}|[0-9a-f]{64})$/.test(proof.claimed) ? parseOid(proof.claimed) : null;
}
