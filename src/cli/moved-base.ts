/** The person's branch that a Spec was made from, and what it has by now that the Spec has not (decision 0015). */
import { shortOid, type Oid } from '../issue.js';
import { findBaseBranch } from '../store/intake.js';
import { branchName } from '../store/refs.js';
import type { Along } from '../store/integration.js';
import type { Policy } from '../policy.js';
import type { OpenedGit } from '../worktree/git-types.js';

/** Gives the branch as it is now, to be taken along; `null`: it is gone, or all of it is there. */
export async function movedBase(git: OpenedGit, tip: Oid): Promise<Along | null> {
  const ref = await findBaseBranch(git, tip);
  const now = ref === null ? null : await git.readRef(ref);
  if (ref === null || now === null || (await git.isAncestor(now, tip))) return null;
  return { name: branchName(ref), tip: now, proved: false };
}

/** Says that the base has moved, and how it is taken along. */
export function movedNotice({ name, tip }: Along, policy: Policy['integrate'], spec: string): string {
  const has = `${name} has moved to ${shortOid(tip)}`;
  return policy.base === 'never'
    ? `${has}, which giro/${spec} does not have; [integrate] base = "on-start" takes it along`
    : `${has}: taken along through the lane`;
}

/** The branch that a checkout is on; `null`: on none. */
export async function branchOf(git: OpenedGit, top: string): Promise<string | null> {
  return (await git.user.headsOfWorktrees()).find(({ path }) => path === top)?.ref ?? null;
}
