/** Joins worktrees with the record: what a worker gets, and what came back told apart into code and `docs/specs/`. */
import type { Finding, IssueId, Oid } from '../issue.js';
import type { Taken, WorkFolders } from '../loop/ports.js';
import { codeTree, specsTree } from '../store/tree.js';
import type { FileChange, Git } from '../worktree/git-types.js';
import type { TakenBack } from '../worktree/place.js';
import type { Worktree, Worktrees } from '../worktree/worktrees.js';

interface Held {
  readonly worktree: Worktree;
  /** The `docs/specs/` that was put there. */
  readonly specs: Oid | null;
}

const largestText = 1024 * 1024;

/** Makes the folders that the Issue loop works with. */
export function workFolders(git: Git, worktrees: Worktrees): WorkFolders {
  const held = new Map<IssueId, Held>();
  const required = (issue: IssueId): Held => {
    const found = held.get(issue);
    if (found === undefined) throw new Error(`${issue} has no worktree`);
    return found;
  };
  return {
    async prepare(issue, commit, files) {
      const prepared = await worktrees.prepare(issue, commit, files);
      if (!prepared.ok) return prepared;
      held.set(issue, { worktree: prepared.value, specs: await specsTree(git, files) });
      return prepared;
    },
    async takeBack(issue, base) {
      const { worktree, specs } = required(issue);
      const left = await worktrees.takeBack(worktree);
      const taken = await takenOf(git, left, base);
      const specsChanged = left.tree !== null && (await specsTree(git, left.tree)) !== specs;
      const findings = [...left.elsewhere.map(elsewhereFinding), ...(specsChanged ? [specsFinding] : [])];
      return { ...taken, findings: [...taken.findings, ...findings] };
    },
    async found(issue, base) {
      const worktree = await worktrees.find(issue);
      if (worktree === null) return null;
      held.set(issue, { worktree, specs: null });
      return takenOf(git, await worktrees.takeBack(worktree), base);
    },
    release(issue) {
      const found = held.get(issue);
      if (found !== undefined) worktrees.release(found.worktree);
      held.delete(issue);
    },
    leave(issue) {
      const found = held.get(issue);
      if (found !== undefined) worktrees.leave(found.worktree);
      held.delete(issue);
      return found?.worktree.folder ?? null;
    },
  };
}

/** The code in what was left, compared with its base. */
async function takenOf(git: Git, left: TakenBack, base: Oid): Promise<Taken> {
  const { tree, refused: findings, subjects } = left;
  if (tree === null) return { code: null, findings, subjects, size: sizeOf([]) };
  const code = await codeTree(git, tree);
  const baseCode = await codeTree(git, (await git.readCommit(base)).tree);
  const changes = code === baseCode ? [] : await git.diffTrees(baseCode, code);
  const marks = await conflictMarks(git, { code, baseCode, changes });
  return { code, findings: [...findings, ...marks], subjects, size: sizeOf(changes) };
}

const specsFinding: Finding = {
  file: 'docs/specs/',
  message: 'changed by the worker; giro alone writes it, and has put its own version back',
};

function elsewhereFinding(found: {
  readonly oid: Oid;
  readonly subject: string;
  readonly where: string;
  readonly ref?: string | null;
}): Finding {
  const saved = found.ref === undefined || found.ref === null ? '' : `; saved as ${found.ref}`;
  return {
    message: `work is only in a ${found.where} (${found.oid.slice(0, 7)} ${JSON.stringify(found.subject)}), not in the files${saved}; leave what counts in the files`,
  };
}

/** A file that was left with both sides of a conflict in it. */
async function conflictMarks(
  git: Git,
  trees: { readonly code: Oid; readonly baseCode: Oid; readonly changes: readonly FileChange[] },
): Promise<readonly Finding[]> {
  const findings: Finding[] = [];
  for (const change of trees.changes) {
    if (change.status === 'deleted' || change.binary) continue;
    const line = await markedLine(git, trees.code, change.path);
    if (line === null || (await markedLine(git, trees.baseCode, change.path)) !== null) continue;
    findings.push({ file: change.path, line, message: 'conflict marks are left in the file' });
  }
  return findings;
}

async function markedLine(git: Git, tree: Oid, path: string): Promise<number | null> {
  const entry = await git.readPath(tree, path);
  if (entry === null || entry.mode === '160000' || entry.mode === '120000') return null;
  const bytes = await git.readBlob(entry.oid);
  if (bytes.length > largestText || !bytes.includes('<<<<<<< ')) return null;
  const lines = bytes.toString('utf8').split('\n');
  const start = lines.findIndex((text) => text.startsWith('<<<<<<< '));
  const end = lines.findIndex((text, index) => index > start && text.startsWith('>>>>>>> '));
  return start >= 0 && end > start ? start + 1 : null;
}

function sizeOf(changes: readonly FileChange[]): Taken['size'] {
  return changes.reduce(
    (size, change) => ({
      files: size.files + 1,
      insertions: size.insertions + change.insertions,
      deletions: size.deletions + change.deletions,
    }),
    { files: 0, insertions: 0, deletions: 0 },
  );
}
