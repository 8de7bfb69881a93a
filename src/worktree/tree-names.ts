/**
 * What the folders of a tree hold, by name. Folders are compared with their trees again and again, and most of those trees are
 * the same each time: what was read last is kept, as little of it as tells a folder from anything else.
 */
import type { Oid } from '../issue.js';
import type { Git } from './git-types.js';
import { treeMode } from './objects.js';

/** The entries of one tree. */
export interface TreeNames {
  readonly folders: ReadonlyMap<string, Oid>;
  readonly others: ReadonlySet<string>;
}

/** Those of 16,000 files take about two megabytes. */
const maxNames = 16_384;

const kept = new Map<Oid, TreeNames>();
let names = 0;

/** Reads the names of a tree. */
export async function namesOf(git: Pick<Git, 'readTree'>, tree: Oid): Promise<TreeNames> {
  const known = kept.get(tree);
  if (known !== undefined) {
    kept.delete(tree);
    kept.set(tree, known);
    return known;
  }
  const folders = new Map<string, Oid>();
  const others = new Set<string>();
  for (const { name, mode, oid } of await git.readTree(tree)) {
    if (mode === treeMode) folders.set(name, oid);
    else others.add(name);
  }
  const found = { folders, others };
  keep(tree, found);
  return found;
}

function keep(tree: Oid, found: TreeNames): void {
  if (kept.has(tree)) return;
  kept.set(tree, found);
  names += sizeOf(found);
  for (const [oldest, of] of kept) {
    if (names <= maxNames) break;
    kept.delete(oldest);
    names -= sizeOf(of);
  }
}

function sizeOf({ folders, others }: TreeNames): number {
  return folders.size + others.size + 1;
}
