/** Where a benchmark puts git's objects: loose as giro leaves them, or in one pack as `git gc` would, for very many. */
import { createHash, hash } from 'node:crypto';
import { closeSync, existsSync, mkdirSync, openSync, writeFileSync, writeSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { crc32, deflateSync } from 'node:zlib';
import type { Oid } from '../src/issue.js';
import type { ObjectKind } from '../src/worktree/git-types.js';
import { nameObject, storedBlock } from '../src/worktree/objects.js';

/** Takes objects in. */
export interface ObjectSink {
  put(kind: ObjectKind, data: Buffer): Oid;
  /** A tree of this name, which differs from one that was put whole only in the names of objects at these offsets. */
  putLike(oid: Oid, data: Buffer, like: { readonly base: Oid; readonly offsets: readonly number[] }): void;
  close(): void;
}

/** Each object in a file of its own. */
export function looseSink(gitDir: string): ObjectSink {
  const write = (oid: Oid, kind: ObjectKind, data: Buffer): Oid => {
    const path = join(gitDir, 'objects', oid.slice(0, 2), oid.slice(2));
    if (existsSync(path)) return oid;
    mkdirSync(dirname(path), { recursive: true });
    const head = Buffer.from(`${kind} ${String(data.length)}\0`);
    writeFileSync(path, compressed(Buffer.concat([head, data])), { mode: 0o444 });
    return oid;
  };
  return {
    put: (kind, data) => write(nameObject('sha1', kind, data), kind, data),
    putLike(oid, data) {
      write(oid, 'tree', data);
    },
    close: () => undefined,
  };
}

const kinds = { commit: 1, tree: 2, blob: 3, delta: 7 } as const;

/** All objects in one pack with its index, which is complete only when it is closed. */
export function packSink(gitDir: string): ObjectSink {
  const folder = join(gitDir, 'objects/pack');
  mkdirSync(folder, { recursive: true });
  const path = join(folder, 'pack-of-the-benchmark.pack');
  // The header has the number of objects, and all of it is hashed: the file is kept in pieces until then.
  const pieces: Buffer[] = [];
  const entries = new Map<Oid, { readonly offset: number; readonly crc: number }>();
  let offset = 12;
  const add = (oid: Oid, head: Buffer, payload: Buffer): Oid => {
    const piece = Buffer.concat([head, compressed(payload)]);
    entries.set(oid, { offset, crc: crc32(piece) });
    pieces.push(piece);
    offset += piece.length;
    return oid;
  };
  return {
    put(kind, data) {
      const oid = nameObject('sha1', kind, data);
      return entries.has(oid) ? oid : add(oid, entryHead(kinds[kind], data.length), data);
    },
    putLike(oid, data, { base, offsets }) {
      const delta = deltaOf(data, offsets);
      add(oid, Buffer.concat([entryHead(kinds.delta, delta.length), Buffer.from(base, 'hex')]), delta);
    },
    close() {
      const header = Buffer.alloc(12);
      header.write('PACK');
      header.writeUInt32BE(2, 4);
      header.writeUInt32BE(entries.size, 8);
      const digest = createHash('sha1');
      const fd = openSync(path, 'w');
      for (const piece of [header, ...pieces]) {
        digest.update(piece);
        writeSync(fd, piece);
      }
      const name = digest.digest();
      writeSync(fd, name);
      closeSync(fd);
      writeFileSync(path.replace(/\.pack$/, '.idx'), indexOf(entries, name));
    },
  };
}

/** As giro writes its own. */
function compressed(bytes: Buffer): Buffer {
  return bytes.length < 65_536 ? Buffer.concat(storedBlock(Buffer.alloc(0), bytes)) : deflateSync(bytes, { level: 1 });
}

/** Kind and size: four bits of the size in the first byte, seven in each further one. */
function entryHead(kind: number, size: number): Buffer {
  const bytes = [(kind << 4) | (size & 15)];
  for (let rest = size >> 4; rest > 0; rest >>= 7) {
    bytes.push((bytes.pop() ?? 0) | 128, rest & 127);
  }
  return Buffer.from(bytes);
}

function varint(size: number): readonly number[] {
  const bytes: number[] = [];
  let rest = size;
  for (; rest > 127; rest >>= 7) bytes.push((rest & 127) | 128);
  return [...bytes, rest];
}

/** Copies all of a tree of the same size but twenty bytes at each offset. */
function deltaOf(data: Buffer, offsets: readonly number[]): Buffer {
  const parts: Buffer[] = [Buffer.from([...varint(data.length), ...varint(data.length)])];
  let at = 0;
  for (const next of [...offsets, data.length]) {
    for (; at < next; at += Math.min(next - at, 0xffff)) parts.push(copy(at, Math.min(next - at, 0xffff)));
    if (next === data.length) break;
    parts.push(Buffer.from([20]), data.subarray(next, next + 20));
    at = next + 20;
  }
  return Buffer.concat(parts);
}

function copy(from: number, size: number): Buffer {
  return Buffer.from([
    0xbf,
    from & 255,
    (from >> 8) & 255,
    (from >> 16) & 255,
    (from >> 24) & 255,
    size & 255,
    size >> 8,
  ]);
}

/** Version 2: counts by first byte, names, checksums, offsets. */
function indexOf(entries: ReadonlyMap<Oid, { readonly offset: number; readonly crc: number }>, pack: Buffer): Buffer {
  const sorted = [...entries].sort(([left], [right]) => (left < right ? -1 : 1));
  const counts = Buffer.alloc(1024);
  const [crcs, offsets] = [Buffer.alloc(sorted.length * 4), Buffer.alloc(sorted.length * 4)];
  const firsts = new Array<number>(256).fill(0);
  sorted.forEach(([oid, { offset, crc }], at) => {
    const first = Number.parseInt(oid.slice(0, 2), 16);
    firsts[first] = (firsts[first] ?? 0) + 1;
    crcs.writeUInt32BE(crc, at * 4);
    offsets.writeUInt32BE(offset, at * 4);
  });
  firsts.reduce((sum, count, at) => counts.writeUInt32BE(sum + count, at * 4) && sum + count, 0);
  const names = Buffer.from(sorted.map(([oid]) => oid).join(''), 'hex');
  const body = Buffer.concat([Buffer.from([0xff, 0x74, 0x4f, 0x63, 0, 0, 0, 2]), counts, names, crcs, offsets, pack]);
  return Buffer.concat([body, hash('sha1', body, 'buffer')]);
}
