/**
 * Trees as git stores them, read and edited as bytes: a folder of a thousand Issues changes with every checkpoint, and a
 * thousand decoded entries would be garbage each time. Pure.
 *
 * The trees given here are sorted, each name once: `sorted` sees to that where they come in.
 */
import { parseOid } from '../issue.js';
import type { EntryChange, HashName, TreeEntry, TreeTarget } from './git-types.js';
import { decodeName, decodeTree, encodeName, encodeTree, oidBytes, treeMode } from './objects.js';

/** Finds an entry by its name. */
export function findEntry(tree: Buffer, hash: HashName, name: string): TreeTarget | null {
  const cursor = new Cursor(tree, hash);
  const bytes = encodeName(name);
  while (cursor.next()) if (cursor.isNamed(bytes)) return cursor.target();
  return null;
}

/** The entries of a tree that are folders. */
export function foldersOf(tree: Buffer, hash: HashName): readonly TreeEntry[] {
  const cursor = new Cursor(tree, hash);
  const folders: TreeEntry[] = [];
  while (cursor.next()) if (cursor.isFolder) folders.push(cursor.entry());
  return folders;
}

/** Replaces, adds and removes (`null`) entries; all others stay byte for byte. */
export function spliceTree(tree: Buffer, hash: HashName, edits: ReadonlyMap<string, TreeTarget | null>): Buffer {
  const cursor = new Cursor(tree, hash);
  const parts: Buffer[] = [];
  let from = 0;
  let more = cursor.next();
  for (const { key, line } of marksOf(edits)) {
    while (more && cursor.compare(key) < 0) more = cursor.next();
    parts.push(tree.subarray(from, cursor.start));
    from = cursor.start;
    if (more && cursor.compare(key) === 0) {
      from = cursor.end;
      more = cursor.next();
    }
    if (line !== null) parts.push(line);
  }
  parts.push(tree.subarray(from));
  return Buffer.concat(parts);
}

/** Places in a tree where an edit has something to do, in git's order: a file and a folder of one name lie apart. */
function marksOf(
  edits: ReadonlyMap<string, TreeTarget | null>,
): readonly { readonly key: Buffer; readonly line: Buffer | null }[] {
  return [...edits]
    .flatMap(([name, target]) => {
      const line = target === null ? null : encodeTree([{ ...target, name }]);
      const isFolder = target?.mode === treeMode;
      return [
        { key: encodeName(name), line: isFolder ? null : line },
        { key: encodeName(`${name}/`), line: isFolder ? line : null },
      ];
    })
    .sort((left, right) => Buffer.compare(left.key, right.key));
}

/** Finds the names at which two trees differ. */
export function compareTrees(was: Buffer, is: Buffer, hash: HashName): readonly EntryChange[] {
  const [left, right] = [new Cursor(was, hash), new Cursor(is, hash)];
  const changes = new Map<string, EntryChange>();
  const gone = ({ name, ...target }: TreeEntry): void => {
    changes.set(name, { name, was: target, is: changes.get(name)?.is });
  };
  const come = ({ name, ...target }: TreeEntry): void => {
    changes.set(name, { name, was: changes.get(name)?.was, is: target });
  };
  let [moreLeft, moreRight] = [left.next(), right.next()];
  while (moreLeft || moreRight) {
    const order = !moreLeft ? 1 : !moreRight ? -1 : left.compareWith(right);
    if (order !== 0 || !left.equals(right)) {
      if (order <= 0) gone(left.entry());
      if (order >= 0) come(right.entry());
    }
    if (order <= 0) moreLeft = left.next();
    if (order >= 0) moreRight = right.next();
  }
  return [...changes.values()];
}

/** A tree as it should be: one that another tool wrote in a wrong order is sorted here, for as long as it is looked at. */
export function sorted(tree: Buffer, hash: HashName): Buffer {
  const [before, cursor] = [new Cursor(tree, hash), new Cursor(tree, hash)];
  if (!cursor.next()) return tree;
  while (cursor.next()) {
    before.next();
    if (before.compareWith(cursor) >= 0) return encodeTree(decodeTree(tree, hash));
  }
  return tree;
}

const [space, slash, zero, four] = [0x20, 0x2f, 0x30, 0x34];

/** One entry of a tree at a time, without making anything of it. */
class Cursor {
  readonly #tree: Buffer;
  readonly #width: number;
  #modeEnd = 0;
  #nameEnd = 0;
  /** Where the entry begins; the length of the tree after the last. */
  start = 0;
  end = 0;
  isFolder = false;

  constructor(tree: Buffer, hash: HashName) {
    this.#tree = tree;
    this.#width = oidBytes(hash);
  }

  /** Goes to the next entry; false after the last. */
  next(): boolean {
    const tree = this.#tree;
    this.start = this.end;
    if (this.start >= tree.length) return false;
    let at = this.start;
    while (at < tree.length && tree[at] !== space) at += 1;
    this.#modeEnd = at;
    while (at < tree.length && tree[at] !== 0) at += 1;
    this.#nameEnd = at;
    this.end = at + 1 + this.#width;
    if (this.end > tree.length) throw new Error('damaged tree object');
    this.isFolder = this.#isFolder();
    return true;
  }

  /** `40000`, which some tools wrote with a zero before it. */
  #isFolder(): boolean {
    const tree = this.#tree;
    let at = this.start;
    while (tree[at] === zero) at += 1;
    if (this.#modeEnd - at !== 5 || tree[at] !== four) return false;
    for (at += 1; at < this.#modeEnd; at += 1) if (tree[at] !== zero) return false;
    return true;
  }

  /** One byte of what entries are sorted by; -1 behind it. */
  #key(offset: number): number {
    const at = this.#modeEnd + 1 + offset;
    if (at < this.#nameEnd) return this.#tree[at] ?? -1;
    return at === this.#nameEnd && this.isFolder ? slash : -1;
  }

  compare(key: Buffer): number {
    for (let offset = 0; ; offset += 1) {
      const [mine, other] = [this.#key(offset), key[offset] ?? -1];
      if (mine !== other) return mine - other;
      if (mine === -1) return 0;
    }
  }

  compareWith(other: Cursor): number {
    for (let offset = 0; ; offset += 1) {
      const [mine, theirs] = [this.#key(offset), other.#key(offset)];
      if (mine !== theirs) return mine - theirs;
      if (mine === -1) return 0;
    }
  }

  isNamed(name: Buffer): boolean {
    const at = this.#modeEnd + 1;
    return this.#nameEnd - at === name.length && this.#tree.compare(name, 0, name.length, at, this.#nameEnd) === 0;
  }

  equals(other: Cursor): boolean {
    return this.#tree.compare(other.#tree, other.start, other.end, this.start, this.end) === 0;
  }

  target(): TreeTarget {
    const { mode, oid } = this.entry();
    return { mode, oid };
  }

  entry(): TreeEntry {
    const tree = this.#tree;
    return {
      mode: tree.toString('latin1', this.start, this.#modeEnd).padStart(6, '0'),
      name: decodeName(tree.subarray(this.#modeEnd + 1, this.#nameEnd)),
      oid: parseOid(tree.toString('hex', this.#nameEnd + 1, this.end)),
    };
  }
}
