/**
 * Git's index, version 4, as far as giro edits one itself: a sorted list of files with what the disk said about each, and
 * the names of the trees that the list makes up. What is not plain (stages of a merge, files marked by a person, an index
 * split in two) is not understood on purpose; git does those.
 *
 * An entry is `stat (40 bytes), oid, flags (2)`, then how many bytes of the path before it fall away, and what comes
 * instead. See git's `Documentation/gitformat-index.txt`.
 */
import { createHash } from 'node:crypto';
import type { HashName } from './git-types.js';
import { parseTrees, treeExtension, type IndexTree } from './index-trees.js';

/** An index as read, with the places of some paths. */
export interface IndexFile {
  readonly data: Buffer;
  readonly hash: HashName;
  readonly count: number;
  /** Where the entries end. */
  readonly end: number;
  /** The trees its entries make up. */
  readonly trees: IndexTree;
  /** One for each path that was asked for. */
  readonly places: readonly IndexPlace[];
}

/** Where a path is in an index, or would be. */
export interface IndexPlace {
  readonly path: Buffer;
  /** What stands before the path of its entry; null: it has none. */
  readonly entry: Buffer | null;
  /** Where its entry, else the next one, starts. */
  readonly start: number;
  /** Where the next one starts. */
  readonly end: number;
  /** Path of the entry before. */
  readonly previous: Buffer;
}

const headerSize = 12;
const statSize = 40;
const maxPath = 4096;
/** Everything in the flags but the length of the name: marked, extended, a stage. */
const unplainFlags = 0xf000;
const nameFlags = 0x0fff;

/** Reads an index and finds paths in it, given in git's order; null when it is not plain, or damaged. */
export function readIndex(data: Buffer, hash: HashName, paths: readonly Buffer[]): IndexFile | null {
  const width = widthOf(hash);
  if (data.length < headerSize + width || data.toString('latin1', 0, 4) !== 'DIRC') return null;
  if (data.readUInt32BE(4) !== 4) return null;
  const body = data.length - width;
  if (!checksum(data.subarray(0, body), hash).equals(data.subarray(body))) return null;
  const count = data.readUInt32BE(8);
  const walk = new Walk(data, hash);
  const places: IndexPlace[] = [];
  for (let seen = 0; seen < count; seen += 1) {
    if (!walk.next()) return null;
    for (let path = paths[places.length]; path !== undefined; path = paths[places.length]) {
      const order = walk.compare(path);
      if (order < 0) break;
      places.push(walk.place(path, order === 0));
    }
  }
  walk.past();
  for (const path of paths.slice(places.length)) places.push(walk.place(path, false));
  const trees = parseTrees(data.subarray(walk.end, body), width);
  return trees === null ? null : { data, hash, count, end: walk.end, trees, places };
}

/** The stat part and the name of an object, as an entry for a path. */
export function indexEntry(stat: Buffer, oid: string, path: Buffer): Buffer {
  const flags = Buffer.alloc(2);
  flags.writeUInt16BE(Math.min(path.length, nameFlags));
  return Buffer.concat([stat, Buffer.from(oid, 'hex'), flags]);
}

/** The index with other entries at the places it was read with (null: none), and other trees. */
export function editIndex(index: IndexFile, entries: readonly (Buffer | null)[], trees: IndexTree): Buffer {
  const { data, hash, places } = index;
  const parts: Buffer[] = [];
  let count = index.count;
  let from = headerSize;
  /** Path of the entry written last; null: the one before the entry at `from`, as it always was. */
  let last: Buffer | null = null;
  for (const [at, place] of places.entries()) {
    if (from < place.start) {
      // An entry whose neighbour changed says anew how much of it it shares.
      if (last !== null) from = moved(index, { from, last, before: places[at - 1] }, parts);
      parts.push(data.subarray(from, place.start));
      last = null;
    }
    const entry = entries[at] ?? null;
    const before: Buffer = last ?? place.previous;
    if (entry !== null) parts.push(entry, suffix(place.path, before));
    count += (entry === null ? 0 : 1) - (place.entry === null ? 0 : 1);
    last = entry === null ? before : place.path;
    from = place.end;
  }
  if (from < index.end && last !== null) from = moved(index, { from, last, before: places.at(-1) }, parts);
  parts.push(data.subarray(from, index.end));
  const body = Buffer.concat([header(count), ...parts, treeExtension(trees)]);
  return Buffer.concat([body, checksum(body, hash)]);
}

/** Writes the entry that stands behind a place, with another one before it; gives where the next one starts. */
function moved(
  { data, hash }: IndexFile,
  { from, last, before }: { readonly from: number; readonly last: Buffer; readonly before: IndexPlace | undefined },
  parts: Buffer[],
): number {
  if (before === undefined) throw new Error('nothing was changed before this entry');
  const walk = new Walk(data, hash, { from, path: before.entry === null ? before.previous : before.path });
  if (!walk.next()) throw new Error('an index that was read cannot be read');
  parts.push(walk.entry(), suffix(walk.path(), last));
  return walk.end;
}

function suffix(path: Buffer, before: Buffer): Buffer {
  let shared = 0;
  while (shared < path.length && shared < before.length && path[shared] === before[shared]) shared += 1;
  return Buffer.concat([stripped(before.length - shared), path.subarray(shared), Buffer.from([0])]);
}

/** A number in groups of seven bits, each of which but the last counts one more than it says. */
function stripped(count: number): Buffer {
  const bytes = [count & 0x7f];
  for (let rest = (count >> 7) - 1; rest >= 0; rest = (rest >> 7) - 1) bytes.unshift(0x80 | (rest & 0x7f));
  return Buffer.from(bytes);
}

function widthOf(hash: HashName): number {
  return hash === 'sha1' ? 20 : 32;
}

function checksum(data: Buffer, hash: HashName): Buffer {
  return createHash(hash).update(data).digest();
}

function header(count: number): Buffer {
  const bytes = Buffer.alloc(headerSize);
  bytes.write('DIRC', 'latin1');
  bytes.writeUInt32BE(4, 4);
  bytes.writeUInt32BE(count, 8);
  return bytes;
}

/** Goes from entry to entry, with the path of each. Bytes are moved one by one: for a few, a call costs more. */
class Walk {
  readonly #data: Buffer;
  readonly #fixed: number;
  #path = Buffer.alloc(maxPath);
  #length = 0;
  #previous = Buffer.alloc(maxPath);
  #previousLength = 0;
  start: number;
  end: number;

  constructor(data: Buffer, hash: HashName, before: { readonly from: number; readonly path: Buffer } | null = null) {
    this.#data = data;
    this.#fixed = statSize + widthOf(hash) + 2;
    this.start = this.end = before?.from ?? headerSize;
    this.#length = before?.path.copy(this.#path) ?? 0;
  }

  /** False when there is no plain entry. */
  next(): boolean {
    const data = this.#data;
    this.past();
    let at = this.start + this.#fixed;
    if (at + 2 > data.length || ((data[at - 2] ?? 0xff) & (unplainFlags >> 8)) !== 0) return false;
    let byte = data[at++] ?? 0;
    let strip = byte & 0x7f;
    for (; (byte & 0x80) !== 0 && strip < maxPath; strip = ((strip + 1) << 7) | (byte & 0x7f)) byte = data[at++] ?? 0;
    const [path, previous] = [this.#path, this.#previous];
    const kept = this.#previousLength - strip;
    if (kept < 0) return false;
    for (let copied = 0; copied < kept; copied += 1) path[copied] = previous[copied] ?? 0;
    let length = kept;
    for (byte = data[at++] ?? 0; byte !== 0 && length < maxPath; byte = data[at++] ?? 0) path[length++] = byte;
    this.#length = length;
    this.end = at;
    return byte === 0 && length > 0 && at <= data.length;
  }

  /** Leaves the entry behind. */
  past(): void {
    [this.#path, this.#previous] = [this.#previous, this.#path];
    this.#previousLength = this.#length;
    this.start = this.end;
  }

  /** Where its path stands to another one. */
  compare(path: Buffer): number {
    for (let at = 0; at < this.#length && at < path.length; at += 1) {
      const difference = (this.#path[at] ?? 0) - (path[at] ?? 0);
      if (difference !== 0) return difference;
    }
    return this.#length - path.length;
  }

  path(): Buffer {
    return Buffer.from(this.#path.subarray(0, this.#length));
  }

  /** What stands before the path. */
  entry(): Buffer {
    return this.#data.subarray(this.start, this.start + this.#fixed);
  }

  /** The place of a path that is the entry's own, or comes before it. */
  place(path: Buffer, isHere: boolean): IndexPlace {
    const previous = Buffer.from(this.#previous.subarray(0, this.#previousLength));
    return {
      path,
      entry: isHere ? this.entry() : null,
      start: this.start,
      end: isHere ? this.end : this.start,
      previous,
    };
  }
}
