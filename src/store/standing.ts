/** Where an Issue stands when a run takes it up: read from its branch, and from what the integration branch knows of it. */
import { historyOf } from '../config/splice.js';
import { unreachable } from '../failure.js';
import type { Issue, IssueState, Oid, Phase } from '../issue.js';
import type { Git } from '../worktree/git-types.js';
import { closings, readHistory, type HistoryEntry } from './history.js';
import type { BranchPorts } from './issue-branch.js';
import { Journal, type Standing } from './journal.js';
import { isEngines, newestRecord, readCheckpoint, readIssueText } from './read.js';
import { codeTree } from './tree.js';

/**
 * Opens the record of an Issue that is not at rest on the integration branch, from the branch as an earlier run left it.
 * `fresh` means that the branch belongs to an earlier life of the Spec, or is integrated: it is not continued.
 */
export async function openJournal(
  ports: BranchPorts,
  request: {
    readonly issue: Issue;
    readonly tip: Oid;
    readonly branch: Oid | null;
    readonly fresh: boolean;
    /** Where the branch leaves the integration branch; absent or `null`: it is asked for here. */
    readonly fork?: Oid | null;
  },
): Promise<Journal> {
  const { git } = ports;
  const { issue, tip, branch } = request;
  const text = (await readIssueText(git, tip, issue.path)) ?? '';
  const start = { issue, text, refValue: branch };
  if (branch === null || request.fresh) {
    return new Journal(ports, { ...start, history: issue.history, commit: null, base: tip, standing: 'fresh' });
  }
  const own = await readOwn(git, issue, branch);
  const base = request.fork ?? (await git.mergeBase(branch, tip)) ?? tip;
  return new Journal(ports, { ...start, ...own, commit: branch, base });
}

/** Where a branch leaves the integration branch. */
export interface Fork {
  /** All of it is there. */
  readonly contained: boolean;
  /** `null`: git has to say. */
  readonly base: Oid | null;
}

/** Finds it for many branches with one question to git; without those of which that cannot be told. */
export async function forksOf(
  git: Pick<Git, 'notBehind' | 'readCommit'>,
  branches: readonly Oid[],
  tip: Oid,
): Promise<ReadonlyMap<Oid, Fork>> {
  const own = branches.length === 0 ? null : await git.notBehind(branches, tip);
  if (own === null) return new Map();
  const forks = branches.map(async (branch): Promise<[Oid, Fork]> => {
    const contained = !own.has(branch);
    return [branch, { contained, base: contained ? branch : await leavesAt(git, branch, own) }];
  });
  return new Map(await Promise.all(forks));
}

/** Goes down a branch to the commit that the integration branch has; where there are several ways, only an engine's is clear. */
async function leavesAt(git: Pick<Git, 'readCommit'>, branch: Oid, own: ReadonlySet<Oid>): Promise<Oid | null> {
  for (let at = branch; ;) {
    const commit = await git.readCommit(at);
    const [mine, ...others] = commit.parents.filter((parent) => own.has(parent));
    const [shared, ...more] = commit.parents.filter((parent) => !own.has(parent));
    if (others.length + more.length > 0) return null;
    if (mine === undefined) return shared ?? null;
    // The engine merges a tip that is newer than all that the branch has.
    if (shared !== undefined) return isEngines(commit) ? shared : null;
    at = mine;
  }
}

/** What the Issue's branch says of it, joined with what the integration branch knows of its escalations. */
async function readOwn(git: Git, issue: Issue, branch: Oid): Promise<{ history: string; standing: Standing }> {
  const { record, byHand: above } = await newestRecord(git, branch);
  // A person who changed nothing but files of the Spec has not done the work.
  const byHand = above && (record === null || (await codeOf(git, record)) !== (await codeOf(git, branch)));
  const text = record === null ? null : await readIssueText(git, record, issue.path);
  if (text === null) return { history: issue.history, standing: byHand ? 'by-hand' : 'between' };
  const history = historyOf(text);
  // Answered since: the integration branch has everything that the branch has, and the answer.
  if (closings(readHistory(issue.history)) > closings(readHistory(history))) {
    return { history: issue.history, standing: byHand ? 'by-hand' : 'between' };
  }
  const standing = standingOf(readCheckpoint(text), readHistory(history));
  return { history, standing: byHand && issue.state !== 'needs-human' ? 'by-hand' : standing };
}

function standingOf(
  checkpoint: { readonly state: IssueState | null; readonly phase: Phase | null },
  entries: readonly HistoryEntry[],
): Standing {
  if (checkpoint.state === 'needs-human') return 'needs-human';
  const newest = entries.findLast((entry) => entry.kind === 'attempt');
  if (newest?.kind !== 'attempt') return 'between';
  switch (checkpoint.phase) {
    case 'judging':
      return 'judging';
    case 'integrating':
      return 'integrating';
    case 'working':
    case null:
      return newest.verdict === undefined ? 'interrupted' : 'between';
    default:
      return unreachable(checkpoint.phase);
  }
}

async function codeOf(git: Git, commit: Oid): Promise<Oid> {
  return codeTree(git, (await git.readCommit(commit)).tree);
}
