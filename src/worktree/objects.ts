/**
 * Git's objects as bytes: encoding, decoding, names. Pure; `git.ts` puts them on disk.
 *
 * Names in trees are bytes. Valid UTF-8 becomes the usual string; each byte that is not becomes a lone surrogate
 * (U+DC80 to U+DCFF), which no valid text contains, so every name survives a round trip.
 */
import { createHash, hash as hashOf } from 'node:crypto';
import { deflate } from 'node:zlib';
import { promisify } from 'node:util';
import { parseOid, type Oid } from '../issue.js';
import type { CommitInfo, HashName, NewCommit, ObjectKind, TreeEntry } from './git-types.js';

/** The one identity of giro's commits. */
export const identity = { name: 'giro', email: 'giro@localhost' } as const;

const deflateLater = promisify(deflate);
const strict = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** What git hashes and stores before the bytes of an object. */
function headOf(kind: ObjectKind, data: Uint8Array): Buffer {
  return Buffer.from(`${kind} ${String(data.length)}\0`);
}

/** Up to here a copy costs less than a second call of the hash. */
const smallObject = 4096;

/** Names an object. */
export function nameObject(hash: HashName, kind: ObjectKind, data: Uint8Array): Oid {
  if (data.length <= smallObject) return parseOid(hashOf(hash, Buffer.concat([headOf(kind, data), data]), 'hex'));
  return parseOid(createHash(hash).update(headOf(kind, data)).update(data).digest('hex'));
}

/** The most that one stored block of zlib's format can hold. */
const largestStored = 65_535;

/**
 * Makes the bytes of a loose file, in pieces: trees of a thousand Issues are written with every checkpoint, and are not copied
 * for it. Small objects, which are the rule, go into zlib's format as they are: compressing one costs more than all else that is
 * done with it, and mostly saves not one block of the disk. Of a large folder half is names of objects, which nothing makes shorter.
 */
export async function looseFile(kind: ObjectKind, data: Uint8Array): Promise<readonly Uint8Array[]> {
  const head = headOf(kind, data);
  if (head.length + data.length > largestStored) return [await deflateLater(Buffer.concat([head, data]), { level: 1 })];
  return storedBlock(head, data);
}

/** One stored block of at most 65,535 bytes: a header, the length twice, the bytes, their checksum. */
export function storedBlock(head: Uint8Array, data: Uint8Array): readonly Uint8Array[] {
  const length = head.length + data.length;
  const before = Buffer.allocUnsafe(7 + head.length);
  before.writeUInt16BE(0x7801, 0);
  before.writeUInt8(1, 2);
  before.writeUInt16LE(length, 3);
  before.writeUInt16LE(0xffff - length, 5);
  before.set(head, 7);
  const after = Buffer.allocUnsafe(4);
  after.writeUInt32BE(adler32(data, adler32(head)), 0);
  return [before, data, after];
}

/** Sums that fit into 32 bits for so many bytes before the remainder has to be taken. */
const adlerRun = 5552;

/** Goes on from the checksum of what comes before. */
function adler32(bytes: Uint8Array, before = 1): number {
  let [low, high] = [before % 65_536, Math.floor(before / 65_536)];
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
