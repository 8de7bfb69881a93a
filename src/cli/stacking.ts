/** Where a Spec starts that depends on others: at their proven tips (DESIGN 3). */
import { shortOid, type Oid, type SpecSlug } from '../issue.js';
import type { Policy } from '../policy.js';
import { specsFolder } from '../spec.js';
import { readSpecAt } from '../store/read.js';
import { integrationRef } from '../store/refs.js';
import { checkpointOf, trailer } from '../store/trailers.js';
import type { OpenedGit } from '../worktree/git-types.js';
import { proofHolds } from './landing.js';

/** The proven work of a Spec that others depend on. */
export type ProvedTip =
  | { readonly kind: 'tip'; readonly tip: Oid }
  /** The person's commit has it. */
  | { readonly kind: 'in-head' }
  | { readonly kind: 'unproved'; readonly why: string }
  /** There is no such Spec. */
  | { readonly kind: 'none' };

/** Finds the proven work of a Spec: on its branch, else in the history of the person's commit. */
export async function provedTip(
  { git, policy }: { readonly git: OpenedGit; readonly policy: Policy },
  spec: SpecSlug,
): Promise<ProvedTip> {
  const { head } = git.user;
  const tip = await git.readRef(integrationRef(spec));
  if (tip === null) {
    const log = await git.logBlobs([head], [], `${specsFolder}/${spec}`);
    const proved = log.some(
      ({ message }) => checkpointOf(message) === 'validated' && trailer(message, 'Giro-Validated') !== undefined,
    );
    if (proved) return { kind: 'in-head' };
    if ((await git.readPath(head, `${specsFolder}/${spec}/SPEC.md`)) === null) return { kind: 'none' };
    return { kind: 'unproved', why: `there is no giro/${spec}, and no proof of it in your commit ${shortOid(head)}` };
  }
  const read = await readSpecAt(git, tip, spec);
  if (!read.ok || read.value.spec.state !== 'done') return { kind: 'unproved', why: `giro/${spec} is not proved yet` };
  if (!(await proofHolds(git, policy, tip)))
    return { kind: 'unproved', why: `the proof of giro/${spec} does not hold for the gates of now` };
  return (await git.isAncestor(tip, head)) ? { kind: 'in-head' } : { kind: 'tip', tip };
}
