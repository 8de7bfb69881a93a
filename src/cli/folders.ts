/** Joins worktrees with the record: what a worker gets, and what came back told apart into code and `docs/specs/`. */
import { guardFindings, guardRules } from '../gates/guard.js';
import type { Finding, Issue, IssueId, Oid, SpecSlug } from '../issue.js';
import type { Taken, WorkFolders } from '../loop/ports.js';
import type { Policy } from '../policy.js';
import { codeTree, specsTree } from '../store/tree.js';
import type { FileChange, Git } from '../worktree/git-types.js';
import { inspectTree } from '../worktree/guard.js';
import type { TakenBack } from '../worktree/place-ports.js';
import { mergedThere } from '../worktree/merged.js';
import type { Worktree, Worktrees } from '../worktree/worktrees.js';

interface Held {
  readonly worktree: Worktree;
  /** The `docs/specs/` that was put there. */
  readonly specs: Oid | null;
}

/** What judging the changes of a folder needs. */
export interface GuardPorts {
  readonly git: Git;
  readonly spec: SpecSlug;
  readonly policy: Policy;
}

/** Makes the folders that the Issue loop works with. */
export function workFolders(ports: GuardPorts, worktrees: Worktrees): WorkFolders {
  const { git } = ports;
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
      const { worktree, specs } = required(issue.id);
      const left = await worktrees.takeBack(worktree);
      const taken = await takenOf(ports, left, { issue, base });
      const specsChanged = left.tree !== null && (await specsTree(git, left.tree)) !== specs;
      const findings = [...left.elsewhere.map(elsewhereFinding), ...(specsChanged ? [specsFinding] : [])];
      return { ...taken, findings: [...taken.findings, ...findings] };
    },
    async found(issue, { base, own, tip }) {
      const worktree = await worktrees.find(issue.id);
      if (worktree === null) return null;
      held.set(issue.id, { worktree, specs: null });
      const left = await worktrees.takeBack(worktree);
      if (await isAsShown(git, left)) return null;
      if (left.tree === null) return takenOf(ports, left, { issue, base });
      const codeOf = async (commit: Oid): Promise<Oid> => codeTree(git, (await git.readCommit(commit)).tree);
      const [stands, code] = [await worktrees.standsOn(worktree), await codeTree(git, left.tree)];
      const onto = await mergedThere(git, { stands, base, tip, own, code, codeOf });
      if (onto === null) return takenOf(ports, left, { issue, base });
      return { ...(await takenOf(ports, left, { issue, base: onto })), onto };
    },
    async inspect(issue, code, base) {
      const { baseCode, findings } = await guard(ports, code, { issue, base });
      const refused = await inspectTree(git, baseCode, code);
      return [...refused, ...findings.filter(({ file }) => !refused.some((one) => one.file === file))];
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

interface Origin {
  readonly issue: Issue;
  readonly base: Oid;
}

/** Nobody did anything there: a conflict that was shown to an agent and left as it was is giro's. */
async function isAsShown(git: Git, { tree, shown }: TakenBack): Promise<boolean> {
  return tree !== null && shown !== null && (await codeTree(git, tree)) === (await codeTree(git, shown));
}

/** The code in what was left, compared with its base. */
async function takenOf(ports: GuardPorts, left: TakenBack, origin: Origin): Promise<Taken> {
  const { tree, refused: findings, subjects } = left;
  if (tree === null) return { code: null, findings, subjects, size: sizeOf([]) };
  const code = await codeTree(ports.git, tree);
  const guarded = await guard(ports, code, origin);
  return { code, findings: [...findings, ...guarded.findings], subjects, size: sizeOf(guarded.changes) };
}

/** What the guards say to the difference between an Issue's base and its code. */
async function guard(
  { git, spec, policy }: GuardPorts,
  code: Oid,
  { issue, base: commit }: Origin,
): Promise<{
  readonly baseCode: Oid;
  readonly changes: readonly FileChange[];
  readonly findings: readonly Finding[];
}> {
  const baseCode = await codeTree(git, (await git.readCommit(commit)).tree);
  const changes = code === baseCode ? [] : await git.diffTrees(baseCode, code);
  const base = async (path: string): Promise<Oid | null> => (await git.readPath(baseCode, path))?.oid ?? null;
  const findings = await guardFindings({ changes, blobs: git, base, spec, issue, policy }, guardRules);
  return { baseCode, changes, findings };
}

const specsFinding: Finding = {
  rule: 'specs',
  file: 'docs/specs/',
  message:
    'guard specs: changed by the worker; giro alone writes there, and has put its own version back (a person edits it in the checkout)',
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
