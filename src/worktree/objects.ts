/**
 * Git's objects as bytes: encoding, decoding, names. Pure; `git.ts` puts them on disk.
 *
 * Names in trees are bytes. Valid UTF-8 becomes the usual string; each byte that is not becomes a lone surrogate
 * (U+DC80 to U+DCFF), which no valid text contains, so every name survives a round trip.
 */
import { hash as hashOf } from 'node:crypto';
import { deflate } from 'node:zlib';
import { promisify } from 'node:util';
import { parseOid, type Oid } from '../issue.js';
import type { CommitInfo, HashName, NewCommit, TreeEntry } from './git-types.js';

/** The kinds of objects that giro writes. */
export type ObjectKind = 'blob' | 'tree' | 'commit';

/** The one identity of giro's commits. */
export const identity = { name: 'giro', email: 'giro@localhost' } as const;

const deflateLater = promisify(deflate);
const strict = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Frames an object as git hashes and stores it. */
export function frameObject(kind: ObjectKind, data: Uint8Array): Buffer {
  return Buffer.concat([Buffer.from(`${kind} ${String(data.length)}\0`), data]);
}

/** Names a framed object. */
export function nameObject(hash: HashName, framed: Uint8Array): Oid {
  return parseOid(hashOf(hash, framed, 'hex'));
}

/** The most that one stored block of zlib's format can hold. */
const largestStored = 65_535;

/**
 * Makes the bytes of a loose file. Small objects, which are the rule, go into zlib's format as they are: compressing one
 * costs more than all else that is done with it, and mostly saves not one block of the disk. Of a large folder half is
 * names of objects, which nothing makes shorter.
 */
export async function deflateObject(framed: Uint8Array): Promise<Buffer> {
  return framed.length <= largestStored ? stored(framed) : deflateLater(framed, { level: 1 });
}

/** One stored block: a header, the length twice, the bytes, their checksum. */
function stored(bytes: Uint8Array): Buffer {
  const out = Buffer.allocUnsafe(bytes.length + 11);
  out.writeUInt16BE(0x7801, 0);
  out.writeUInt8(1, 2);
  out.writeUInt16LE(bytes.length, 3);
  out.writeUInt16LE(0xffff - bytes.length, 5);
  out.set(bytes, 7);
  out.writeUInt32BE(adler32(bytes), bytes.length + 7);
  return out;
}

/** Sums that fit into 32 bits for so many bytes before the remainder has to be taken. */
const adlerRun = 5552;

function adler32(bytes: Uint8Array): number {
  let [low, high] = [1, 0];
  for (let at = 0; at < bytes.length;) {
    for (const end = Math.min(at + adlerRun, bytes.length); at < end; at++) {
      low += bytes[at] ?? 0;
      high += low;
    }
    low %= 65_521;
    high %= 65_521;
  }
  return high * 65_536 + low;
}

/** Reads a name or path as git holds it. */
export function decodeName(bytes: Uint8Array): string {
  const plain = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('latin1');
  if (isPlain(plain)) return plain;
  try {
    return strict.decode(bytes);
  } catch {
    return decodeOddName(bytes);
  }
}

function decodeOddName(bytes: Uint8Array): string {
  let text = '';
  for (let at = 0; at < bytes.length;) {
    const length = sequenceLength(bytes, at);
    if (length > 0) text += strict.decode(bytes.subarray(at, at + length));
    else text += String.fromCharCode(0xdc00 + (bytes[at] ?? 0));
    at += Math.max(1, length);
  }
  return text;
}

/** How many bytes from `at` are one valid character; 0 when none. */
function sequenceLength(bytes: Uint8Array, at: number): number {
  for (let length = 1; length <= 4 && at + length <= bytes.length; length++) {
    try {
      strict.decode(bytes.subarray(at, at + length));
      return length;
    } catch {
      // A longer piece may be valid.
    }
  }
  return 0;
}

/** ASCII only: one byte is one character, and both sort alike. */
function isPlain(text: string): boolean {
  return !/[^\x00-\x7f]/.test(text);
}

/** Gives back the bytes of a decoded name. */
export function encodeName(name: string): Buffer {
  if (!/[\udc80-\udcff]/.test(name)) return Buffer.from(name);
  const parts: Buffer[] = [];
  for (const character of name) {
    const code = character.codePointAt(0) ?? 0;
    parts.push(code >= 0xdc80 && code <= 0xdcff ? Buffer.from([code - 0xdc00]) : Buffer.from(character));
  }
  return Buffer.concat(parts);
}

/** Sorts entries as git does: by bytes, and a tree counts as if its name ended in `/`. */
function sortTree(entries: readonly TreeEntry[]): readonly TreeEntry[] {
  const keyed = entries.map((entry) => ({ entry, key: entry.mode === treeMode ? `${entry.name}/` : entry.name }));
  if (keyed.every(({ key }) => isPlain(key))) keyed.sort((left, right) => (left.key < right.key ? -1 : 1));
  else keyed.sort((left, right) => Buffer.compare(encodeName(left.key), encodeName(right.key)));
  return keyed.map(({ entry }) => entry);
}

/** Encodes entries, in whichever order they come. */
export function encodeTree(entries: readonly TreeEntry[]): Buffer {
  const lines = sortTree(entries).map(({ mode, name, oid }) => {
    const head = `${mode.replace(/^0+/, '')} ${name}\0`;
    return { head: isPlain(head) ? head : encodeName(head), oid };
  });
  const out = Buffer.allocUnsafe(lines.reduce((size, { head, oid }) => size + head.length + oid.length / 2, 0));
  let at = 0;
  for (const { head, oid } of lines) {
    at += typeof head === 'string' ? out.write(head, at, 'latin1') : head.copy(out, at);
    at += out.write(oid, at, 'hex');
  }
  return out;
}

/** Mode of a subtree as this code base writes it (git stores `40000`). */
export const treeMode = '040000';

/** How many bytes an object's name has inside a tree. */
export function oidBytes(hash: HashName): number {
  return hash === 'sha1' ? 20 : 32;
}

/** Reads a tree object. */
export function decodeTree(data: Buffer, hash: HashName): readonly TreeEntry[] {
  const width = oidBytes(hash);
  const entries: TreeEntry[] = [];
  for (let at = 0; at < data.length;) {
    const space = data.indexOf(0x20, at);
    const end = data.indexOf(0, space);
    if (space < 0 || end < 0 || end + 1 + width > data.length) throw new Error('damaged tree object');
    entries.push({
      mode: data.toString('latin1', at, space).padStart(6, '0'),
      name: decodeName(data.subarray(space + 1, end)),
      oid: parseOid(data.toString('hex', end + 1, end + 1 + width)),
    });
    at = end + 1 + width;
  }
  return entries;
}

/** Encodes a commit by giro in UTC. */
export function encodeCommit(commit: NewCommit): Buffer {
  const when = `${identity.name} <${identity.email}> ${String(Math.floor(commit.at / 1000))} +0000`;
  // A NUL would end the message for every reader of the commit.
  const message = `${commit.message.replaceAll('\0', '').replace(/\s+$/, '')}\n`;
  const lines = [
    `tree ${commit.tree}`,
    ...commit.parents.map((parent) => `parent ${parent}`),
    `author ${when}`,
    `committer ${when}`,
    '',
  ];
  return Buffer.from(`${lines.join('\n')}\n${message}`);
}

/** Reads a commit object of anybody. */
export function decodeCommit(oid: Oid, data: Buffer): CommitInfo {
  const end = data.indexOf('\n\n');
  const header = data.toString('latin1', 0, end < 0 ? data.length : end);
  // Lines of a signature begin with a space, so they are no field.
  const fields = header.split('\n');
  const values = (name: string): string[] =>
    fields.filter((line) => line.startsWith(`${name} `)).map((line) => line.slice(name.length + 1));
  const stamp = /> (\d+) [+-]\d+$/.exec(values('committer')[0] ?? '');
  return {
    oid,
    tree: parseOid(values('tree')[0] ?? ''),
    parents: values('parent').map(parseOid),
    message: end < 0 ? '' : decodeMessage(data.subarray(end + 2), values('encoding')[0]),
    committedAt: Number(stamp?.[1] ?? 0),
  };
}

function decodeMessage(bytes: Buffer, encoding: string | undefined): string {
  if (encoding === undefined) return bytes.toString();
  try {
    return new TextDecoder(encoding).decode(bytes);
  } catch {
    return bytes.toString();
  }
}

/** Whether text may stand between two `/` of a path in a tree; `.git` in any spelling would be a trap for every checkout. */
export function isSafeComponent(name: string): boolean {
  return name !== '' && name !== '.' && name !== '..' && name.toLowerCase() !== '.git' && !/[\0/]/.test(name);
}
