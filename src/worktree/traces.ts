/**
 * What an agent did with git in its worktree, found by reading files in process: the admin dir's HEAD and reflog, and the
 * stash that all worktrees share. Its result is the files; commits only explain them, or hold what the files do not.
 */
import { join } from 'node:path';
import { parseOid, type Oid } from '../issue.js';
import { headOf, readReflog, type ReflogEntry } from './admin.js';
import type { CommitInfo, Git } from './git-types.js';

/** What reading traces needs. */
export interface TraceRequest {
  readonly git: Pick<
    Git,
    'commonDir' | 'readCommit' | 'readRef' | 'listRefs' | 'isAncestor' | 'diffTrees' | 'readPath'
  >;
  readonly adminDir: string;
  /** The commit the agent started on. */
  readonly base: Oid;
  /** The tree of the files it left; `null` when they could not be taken. */
  readonly taken: Oid | null;
  /** Stash entries that were there when it started. */
  readonly stashes: ReadonlySet<string>;
}

/** Content that is not in the files. */
export interface Stray {
  readonly oid: Oid;
  readonly subject: string;
  readonly where: 'branch' | 'stash' | 'commit';
}

/** What was found. */
export interface Traces {
  /** Of its commits that its HEAD contains, oldest first. */
  readonly subjects: readonly string[];
  readonly elsewhere: readonly Stray[];
  /** Its HEAD, when that holds content which it took out of the files again. */
  readonly undone: Oid | null;
}

const maxChain = 500;
const maxStrays = 20;

/** Reads which entries the stash has; its reflog is the stash. */
export async function stashEntries(commonDir: string): Promise<readonly string[]> {
  return (await readReflog(join(commonDir, 'logs', 'refs', 'stash'))).map(({ oid }) => oid);
}

/** Reads what the agent did with git since it started. */
export async function readTraces(request: TraceRequest): Promise<Traces> {
  const { git, adminDir, base } = request;
  const head = await headOf(adminDir, git);
  const chain = await firstParents(git, head, base);
  const made = await madeCommits(git, await readReflog(join(adminDir, 'logs', 'HEAD')), base);
  const contained = new Map(chain.map((commit) => [commit.oid, commit]));
  const apart: CommitInfo[] = [];
  for (const commit of made) {
    if (contained.has(commit.oid)) continue;
    if (head !== null && (await git.isAncestor(commit.oid, head))) contained.set(commit.oid, commit);
    else apart.push(commit);
  }
  const own = new Set([base, ...contained.keys(), ...made.map(({ oid }) => oid)]);
  const strays = [...(await strayCommits(request, apart)), ...(await strayStashes(request, own))];
  return {
    subjects: [...contained.values()].map(subjectOf),
    elsewhere: strays.slice(0, maxStrays),
    undone: head !== null && contained.has(head) && (await isLost(request, head, base)) ? head : null,
  };
}

/** First parents from HEAD down to the base, oldest first; empty when that way does not lead to the base. */
async function firstParents(git: TraceRequest['git'], head: Oid | null, base: Oid): Promise<readonly CommitInfo[]> {
  const chain: CommitInfo[] = [];
  for (let at = head; at !== null && chain.length < maxChain;) {
    if (at === base) return chain.reverse();
    const commit = await readOrNull(git, at);
    if (commit === null) break;
    chain.push(commit);
    at = commit.parents[0] ?? null;
  }
  return [];
}

/** Commits that came into being in this worktree, as its reflog says, oldest first. */
async function madeCommits(
  git: TraceRequest['git'],
  entries: readonly ReflogEntry[],
  base: Oid,
): Promise<readonly CommitInfo[]> {
  const own = new Set<string>([base]);
  const made: CommitInfo[] = [];
  for (const { oid, message } of entries) {
    if (own.has(oid) || isMove(message)) continue;
    const commit = await readOrNull(git, parseOid(oid));
    if (commit === null || !(isMaking(message) || own.has(commit.parents[0] ?? ''))) continue;
    own.add(oid);
    made.push(commit);
  }
  return made;
}

/** Lines of the reflog that only go to a commit which was there before. */
function isMove(message: string): boolean {
  return /^(?:checkout|reset|branch|clone)\b|: Fast-forward|^rebase[^:]*\((?:start|finish|abort|reset)\)|^pull[^:]*: checkout/i.test(
    message,
  );
}

function isMaking(message: string): boolean {
  return /^(?:commit|cherry-pick|revert|rebase|merge|am|pull)\b/.test(message);
}

/** The newest of each line of commits that are not behind HEAD, when they hold what the files do not. */
async function strayCommits(request: TraceRequest, apart: readonly CommitInfo[]): Promise<readonly Stray[]> {
  const continued = new Set(apart.flatMap(({ parents }) => parents));
  const strays: Stray[] = [];
  let branches: ReadonlySet<Oid> | null = null;
  for (const commit of apart) {
    if (continued.has(commit.oid) || !(await isLost(request, commit.oid, request.base))) continue;
    branches ??= new Set((await request.git.listRefs('refs/heads/')).values());
    strays.push({ oid: commit.oid, subject: subjectOf(commit), where: branches.has(commit.oid) ? 'branch' : 'commit' });
  }
  return strays;
}

/** New stash entries made on one of this worktree's commits: the stash itself does not say who made them. */
async function strayStashes(request: TraceRequest, own: ReadonlySet<string>): Promise<readonly Stray[]> {
  const strays: Stray[] = [];
  for (const entry of await stashEntries(request.git.commonDir)) {
    if (request.stashes.has(entry)) continue;
    const commit = await readOrNull(request.git, parseOid(entry));
    const [parent, , untracked] = commit?.parents ?? [];
    if (commit === null || parent === undefined || !own.has(parent)) continue;
    const lost =
      (await isLost(request, commit.oid, parent)) || (untracked !== undefined && (await isMissing(request, untracked)));
    if (lost) strays.push({ oid: commit.oid, subject: subjectOf(commit), where: 'stash' });
  }
  return strays;
}

/**
 * Whether a commit changed something that is, in the files taken, just as it was before. Where the files changed too, they
 * went on from the commit (an amended or squashed one), and nothing is lost.
 */
async function isLost({ git, taken }: TraceRequest, commit: Oid, before: Oid): Promise<boolean> {
  const { tree } = await git.readCommit(commit);
  if (tree === taken) return false;
  if (taken === null) return true;
  for (const { path } of await git.diffTrees(before, commit)) {
    const [old, now, then] = await Promise.all([before, taken, commit].map((root) => git.readPath(root, path)));
    if (then?.oid !== now?.oid && now?.oid === old?.oid) return true;
  }
  return false;
}

/** Whether a commit holds files that the files taken do not have at all. */
async function isMissing({ git, taken }: TraceRequest, commit: Oid): Promise<boolean> {
  if (taken === null) return true;
  for (const { path } of await git.diffTrees(taken, commit)) {
    const [now, then] = await Promise.all([taken, commit].map((root) => git.readPath(root, path)));
    if (then !== null && now === null) return true;
  }
  return false;
}

function subjectOf({ message }: CommitInfo): string {
  return message.split('\n', 1)[0] ?? '';
}

/** A reflog may name what `gc` has taken away since. */
async function readOrNull(git: TraceRequest['git'], oid: Oid): Promise<CommitInfo | null> {
  try {
    return await git.readCommit(oid);
  } catch {
    return null;
  }
}
