/** Keeping what must go away from a folder: under a ref that is printed (L6). */
import type { IssueId, Oid, SpecSlug } from '../issue.js';
import type { Git } from './git-types.js';

/** Whose work it is. */
export interface Owner {
  readonly spec: SpecSlug;
  readonly issue: IssueId;
}

/** Where everything that was saved lies. */
export const salvageFolder = 'refs/giro/salvage/';

/** Where everything that was saved of a Spec lies. */
export function salvagePrefix(spec: SpecSlug): string {
  return `${salvageFolder}${spec}/`;
}

/** Work could not be put under a ref, and is where it was. */
class SaveRefusedError extends Error {
  constructor(ref: string, why: string) {
    super(`cannot save work as ${ref}: ${why}`);
    this.name = 'SaveRefused';
  }
}

/** Puts a commit under the next free number and gives the ref; one that is kept already keeps its ref. */
export async function saveCommit(git: Pick<Git, 'listRefs' | 'moveRef'>, owner: Owner, oid: Oid): Promise<string> {
  const prefix = `${salvagePrefix(owner.spec)}${owner.issue}/`;
  for (;;) {
    const refs = await git.listRefs(prefix);
    const known = [...refs].find(([, value]) => value === oid);
    if (known !== undefined) return known[0];
    const numbers = [...refs.keys()].map((ref) => Number(ref.slice(prefix.length))).filter(Number.isSafeInteger);
    const ref = `${prefix}${String(Math.max(0, ...numbers) + 1)}`;
    const moved = await git.moveRef(ref, oid, null);
    if (moved.ok) return ref;
    // Going on would lose it, so this ends the run; another one at the same number only means the next number.
    if (moved.failure.kind === 'ref-refused') throw new SaveRefusedError(ref, moved.failure.message);
  }
}
