/** Reads objects through one long-lived `cat-file --batch-command`, and writes trees by editing what was read. */
import type { Conversation } from '../platform/plumbing.js';
import { parseOid, type Oid } from '../issue.js';
import { decodeCommit, decodeTree, isSafeComponent, treeMode } from './objects.js';
import { compareTrees, findEntry, foldersOf, sorted, spliceTree } from './tree-bytes.js';
import {
  GitError,
  MissingObject,
  type CommitInfo,
  type EntryChange,
  type HashName,
  type ObjectKind,
  type TreeEntry,
  type TreeFile,
  type TreeTarget,
} from './git-types.js';

/** One object as stored. */
export interface StoredObject {
  readonly type: string;
  readonly data: Buffer;
}

interface Answer extends StoredObject {
  readonly bytes: number;
}

/** What reading and writing objects needs. */
export interface ObjectPorts {
  readonly hash: HashName;
  /** Starts `cat-file --batch-command`. */
  readonly converse: () => Promise<Conversation>;
  /** Stores an object durably and names it. */
  readonly store: (kind: ObjectKind, data: Uint8Array) => Promise<Oid>;
  readonly name: (kind: ObjectKind, data: Uint8Array) => Oid;
  readonly emptyTree: Oid;
}

interface Waiting {
  /** `info`: only the kind and the size. */
  readonly asked: 'contents' | 'info';
  readonly resolve: (found: Answer | null) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Asks one `cat-file --batch-command`, many questions at a time; it answers in order. It finds objects written after it started:
 * git looks at its packs again before it says that something is missing.
 */
class ObjectReader {
  readonly #start: () => Promise<Conversation>;
  #conversation: Promise<Conversation> | null = null;
  #waiting: Waiting[] = [];
  #unsaid = '';
  #reading = false;

  constructor(start: () => Promise<Conversation>) {
    this.#start = start;
  }

  /** `null`: there is no such object. */
  async read(name: string): Promise<StoredObject | null> {
    return this.#twice(() => this.#ask('contents', name));
  }

  /** Many at once; `null` for each that there is not. */
  readAll(oids: readonly Oid[]): Promise<readonly (StoredObject | null)[]> {
    return this.#twice(() => this.#askAll(oids));
  }

  /** Bytes of an object; `null`: there is no such object. */
  async size(oid: Oid): Promise<number | null> {
    return (await this.#twice(() => this.#ask('info', oid)))?.bytes ?? null;
  }

  async #twice<T>(ask: () => Promise<T>): Promise<T> {
    try {
      return await ask();
    } catch (error) {
      // The process was ended from outside, or a read failed on the way: one new process, once.
      if (!(error instanceof GitError)) throw error;
      return ask();
    }
  }

  async #ask(asked: Waiting['asked'], name: string): Promise<Answer | null> {
    this.#conversation ??= this.#start();
    const conversation = await this.#conversation;
    return new Promise((resolve, reject) => {
      this.#waiting.push({ asked, resolve, reject });
      this.#say(conversation, `${asked} ${name}\n`);
      if (!this.#reading) void this.#pump(conversation);
    });
  }

  /** As one promise: there may be thousands of them. */
  async #askAll(oids: readonly Oid[]): Promise<readonly (Answer | null)[]> {
    if (oids.length === 0) return [];
    this.#conversation ??= this.#start();
    const conversation = await this.#conversation;
    return new Promise((resolve, reject) => {
      const answers: (Answer | null)[] = [];
      const take = (answer: Answer | null): void => {
        if (answers.push(answer) === oids.length) resolve(answers);
      };
      this.#waiting.push(...oids.map(() => ({ asked: 'contents', resolve: take, reject }) as const));
      this.#say(conversation, oids.map((oid) => `contents ${oid}\n`).join(''));
      if (!this.#reading) void this.#pump(conversation);
    });
  }

  /** Whatever is asked in one go is written in one go: it may be thousands of questions. */
  #say(conversation: Conversation, question: string): void {
    this.#unsaid += question;
    if (this.#unsaid.length > question.length) return;
    queueMicrotask(() => {
      conversation.write(this.#unsaid);
      this.#unsaid = '';
    });
  }

  async #pump(conversation: Conversation): Promise<void> {
    this.#reading = true;
    try {
      for (let next = this.#waiting[0]; next !== undefined; next = this.#waiting[0]) {
        const answer = await readAnswer(conversation, next.asked);
        this.#waiting.shift();
        next.resolve(answer);
      }
    } catch (error) {
      this.#fail(conversation, error);
    } finally {
      this.#reading = false;
    }
  }

  #fail(conversation: Conversation, error: unknown): void {
    const lost = this.#waiting;
    this.#waiting = [];
    this.#conversation = null;
    void conversation.close();
    const reason = error instanceof Error ? error.message : String(error);
    const failure = new GitError(['cat-file', '--batch-command'], null, `${reason} ${conversation.stderrTail()}`);
    for (const one of lost) one.reject(failure);
  }

  async close(): Promise<void> {
    const conversation = await this.#conversation;
    this.#conversation = null;
    await conversation?.close();
  }
}

async function readAnswer(conversation: Conversation, asked: Waiting['asked']): Promise<Answer | null> {
  const header = await conversation.readLine();
  if (header === null) throw new Error('ended');
  const [, type = '', size] = header.split(' ');
  if (size === undefined) {
    if (type === 'missing') return null;
    throw new Error(`unreadable answer ${JSON.stringify(header)}`);
  }
  const bytes = Number(size);
  if (asked === 'info') return { type, bytes, data: Buffer.alloc(0) };
  const data = await conversation.readBytes(bytes + 1);
  return { type, bytes, data: data.subarray(0, -1) };
}

/** Keeps what was read last, up to a number of bytes. */
class Cache<T> {
  readonly #entries = new Map<Oid, { readonly value: T; readonly bytes: number }>();
  readonly #limit: number;
  #bytes = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  get(oid: Oid): T | undefined {
    const entry = this.#entries.get(oid);
    if (entry === undefined) return undefined;
    this.#entries.delete(oid);
    this.#entries.set(oid, entry);
    return entry.value;
  }

  set(oid: Oid, value: T, bytes: number): void {
    if (this.#entries.has(oid)) return;
    this.#entries.set(oid, { value, bytes });
    this.#bytes += bytes;
    for (const [oldest, entry] of this.#entries) {
      if (this.#bytes <= this.#limit) break;
      this.#entries.delete(oldest);
      this.#bytes -= entry.bytes;
    }
  }
}

/** Edits of one folder: entries by name, or edits further down. */
type Edits = Map<string, TreeTarget | null | Edits>;

/** Beyond it trees are stored though nobody wants them. */
const maxPendingBytes = 512 * 1024;

/** Texts of Issues are read again and again; anything larger is not. */
const largestKeptBlob = 64 * 1024;

const keptBlobBytes = 512 * 1024;

/** The objects of a repository. */
export class Objects {
  readonly #ports: ObjectPorts;
  readonly #reader: ObjectReader;
  readonly #trees = new Cache<Buffer>(1024 * 1024);
  readonly #commits = new Cache<CommitInfo>(256 * 1024);
  readonly #blobs = new Cache<Buffer>(keptBlobBytes);
  /** Trees that were made and that nothing stored names yet: many are only a step on the way to another, or a name. */
  readonly #pending = new Map<Oid, Buffer>();
  readonly #storing = new Map<Oid, Promise<void>>();
  #pendingBytes = 0;

  constructor(ports: ObjectPorts) {
    this.#ports = ports;
    this.#reader = new ObjectReader(ports.converse);
  }

  async readCommit(oid: Oid): Promise<CommitInfo> {
    return this.#commits.get(oid) ?? this.#rememberCommit(oid, expectKind(await this.#read(oid), oid, 'commit'));
  }

  async readTree(oid: Oid): Promise<readonly TreeEntry[]> {
    return decodeTree((await this.#tree(oid)).data, this.#ports.hash);
  }

  /** The tree that an object stands for: its own, or its commit's. */
  async treeOf(oid: Oid): Promise<Oid> {
    return this.#commits.get(oid)?.tree ?? (await this.#tree(oid)).oid;
  }

  async changedEntries(from: Oid | null, to: Oid): Promise<readonly EntryChange[]> {
    const [was, is] = await Promise.all([this.#tree(from ?? this.#ports.emptyTree), this.#tree(to)]);
    return was.oid === is.oid ? [] : compareTrees(was.data, is.data, this.#ports.hash);
  }

  async #tree(oid: Oid): Promise<{ readonly oid: Oid; readonly data: Buffer }> {
    if (oid === this.#ports.emptyTree) return { oid, data: Buffer.alloc(0) };
    const known = this.#trees.get(oid) ?? this.#pending.get(oid);
    if (known !== undefined) return { oid, data: known };
    const commit = this.#commits.get(oid);
    if (commit !== undefined) return this.#tree(commit.tree);
    const object = await this.#read(oid);
    if (object.type === 'commit') return this.#tree(this.#rememberCommit(oid, object.data).tree);
    const data = sorted(expectKind(object, oid, 'tree'), this.#ports.hash);
    return { oid, data: this.#rememberTree(oid, data) };
  }

  async readBlob(oid: Oid): Promise<Buffer> {
    return this.#blobs.get(oid) ?? this.#rememberBlob(oid, expectKind(await this.#read(oid), oid, 'blob'));
  }

  /** Kept are they only when all of them have room: of thousands only some would be left. */
  async readBlobs(oids: readonly Oid[]): Promise<readonly Buffer[]> {
    const objects = await this.#reader.readAll(oids);
    const blobs = oids.map((oid, at) => {
      const object = objects[at] ?? null;
      if (object === null) throw new MissingObject(oid);
      return expectKind(object, oid, 'blob');
    });
    const fits = blobs.reduce((sum, data) => sum + data.length, 0) <= keptBlobBytes / 2;
    return fits ? blobs.map((data, at) => this.#rememberBlob(oids[at] ?? this.#ports.emptyTree, data)) : blobs;
  }

  async readOnce(commit: Oid, path: string): Promise<Buffer | null> {
    // A name with a space or a line end cannot be asked for in one line.
    if (/\s/.test(path)) {
      const entry = await this.readPath(commit, path);
      return entry === null || entry.mode === treeMode ? null : this.readBlob(entry.oid);
    }
    const object = await this.#reader.read(`${commit}:${path}`);
    return object?.type === 'blob' ? object.data : null;
  }

  async sizeOf(oid: Oid): Promise<number> {
    const known = this.#blobs.get(oid)?.length ?? (await this.#reader.size(oid));
    if (known === null) throw new Error(`there is no object ${oid}`);
    return known;
  }

  async writeBlob(data: Buffer): Promise<Oid> {
    const oid = await this.#ports.store('blob', data);
    this.#rememberBlob(oid, data);
    return oid;
  }

  /** With all that is pending of its tree. */
  async writeCommit(tree: Oid, data: Buffer): Promise<Oid> {
    await this.settle(tree);
    const oid = await this.#ports.store('commit', data);
    this.#rememberCommit(oid, data);
    return oid;
  }

  async exists(oid: Oid): Promise<boolean> {
    return (await this.#reader.read(oid)) !== null;
  }

  async readPath(tree: Oid, path: string): Promise<TreeTarget | null> {
    let found: TreeTarget = { mode: treeMode, oid: tree };
    for (const name of path.split('/')) {
      if (found.mode !== treeMode) return null;
      const entry: TreeTarget | null = findEntry((await this.#tree(found.oid)).data, this.#ports.hash, name);
      if (entry === null) return null;
      found = entry;
    }
    return found;
  }

  /** All files of a tree in git's order; `null` when it has more folders than are worth asking for one by one. */
  async walk(tree: Oid, maxFolders: number): Promise<readonly TreeFile[] | null> {
    let left = maxFolders;
    const visit = async (oid: Oid, prefix: string): Promise<readonly TreeFile[]> => {
      if (left-- <= 0) return [];
      const entries = await this.readTree(oid);
      const parts = await Promise.all(
        entries.map(async ({ mode, name, oid: target }) =>
          mode === treeMode ? visit(target, `${prefix}${name}/`) : [{ path: prefix + name, mode, oid: target }],
        ),
      );
      return parts.flat();
    };
    const files = await visit(tree, '');
    return left < 0 ? null : files;
  }

  async editTree(tree: Oid, edits: ReadonlyMap<string, TreeTarget | null>): Promise<Oid> {
    const root: Edits = new Map();
    for (const [path, target] of edits) addEdit(root, path, target);
    return (await this.#edit(tree, root)) ?? this.#ports.emptyTree;
  }

  /** The edited folder; `null` when nothing is left in it. */
  async #edit(tree: Oid, edits: Edits): Promise<Oid | null> {
    const { hash } = this.#ports;
    const before = await this.#tree(tree);
    const targets = await Promise.all(
      [...edits].map(async ([name, edit]): Promise<[string, TreeTarget | null]> => {
        if (!(edit instanceof Map)) return [name, edit];
        return [name, await this.#editBelow(findEntry(before.data, hash, name), edit)];
      }),
    );
    const after = spliceTree(before.data, hash, new Map(targets));
    if (after.length === 0) return null;
    // A tree that did not change is stored already. (A commit's name may have been given for it.)
    return after.equals(before.data) ? before.oid : this.#writeTree(after);
  }

  async #editBelow(entry: TreeTarget | null, edits: Edits): Promise<TreeTarget | null> {
    const folder = entry?.mode === treeMode ? entry.oid : null;
    // Removing something below a file, or below nothing, leaves what is there.
    if (folder === null && !holdsTarget(edits)) return entry;
    const oid = await this.#edit(folder ?? this.#ports.emptyTree, edits);
    return oid === null ? null : { mode: treeMode, oid };
  }

  async #writeTree(data: Buffer): Promise<Oid> {
    const oid = this.#ports.name('tree', data);
    if (this.#pending.has(oid)) return oid;
    this.#pending.set(oid, this.#rememberTree(oid, data));
    this.#pendingBytes += data.length;
    await this.#storeOldest();
    return oid;
  }

  async #storeOldest(): Promise<void> {
    for (const [oldest] of this.#pending) {
      if (this.#pendingBytes <= maxPendingBytes) return;
      await this.#storePending(oldest);
    }
  }

  /** Stores what is pending of a tree and below it. */
  async settle(tree: Oid): Promise<void> {
    const found = new Set<Oid>();
    const visit = (oid: Oid): void => {
      const data = this.#pending.get(oid);
      if (data === undefined || found.has(oid)) return;
      found.add(oid);
      for (const folder of foldersOf(data, this.#ports.hash)) visit(folder.oid);
    };
    visit(tree);
    await Promise.all([...found].map((oid) => this.#storePending(oid)));
  }

  /** Once, however many want it. */
  async #storePending(oid: Oid): Promise<void> {
    const data = this.#pending.get(oid);
    if (data === undefined) return;
    const storing = this.#storing.get(oid) ?? this.#store(oid, data);
    this.#storing.set(oid, storing);
    await storing;
  }

  async #store(oid: Oid, data: Buffer): Promise<void> {
    try {
      await this.#ports.store('tree', data);
      // Not before it is stored: another caller may want it meanwhile.
      if (this.#pending.delete(oid)) this.#pendingBytes -= data.length;
    } finally {
      this.#storing.delete(oid);
    }
  }

  async #read(oid: Oid): Promise<StoredObject> {
    const object = await this.#reader.read(oid);
    if (object === null) {
      throw new MissingObject(oid);
    }
    return object;
  }

  #rememberCommit(oid: Oid, data: Buffer): CommitInfo {
    const commit = decodeCommit(oid, data);
    this.#commits.set(oid, commit, data.length + 500);
    return commit;
  }

  #rememberBlob(oid: Oid, data: Buffer): Buffer {
    if (data.length > largestKeptBlob) return data;
    const own = apart(data);
    this.#blobs.set(oid, own, own.length + 300);
    return own;
  }

  #rememberTree(oid: Oid, data: Buffer): Buffer {
    const own = apart(data);
    this.#trees.set(oid, own, own.length + 100);
    return own;
  }

  close(): Promise<void> {
    return this.#reader.close();
  }
}

function expectKind(object: StoredObject, oid: Oid, kind: ObjectKind): Buffer {
  if (object.type !== kind) throw new Error(`${oid} is a ${object.type}, not a ${kind}`);
  return object.data;
}

/** What is kept must not keep the larger piece of memory alive that it was cut from. */
function apart(data: Buffer): Buffer {
  if (data.buffer.byteLength <= data.length * 1.25) return data;
  const own = Buffer.allocUnsafeSlow(data.length);
  data.copy(own);
  return own;
}

function addEdit(root: Edits, path: string, target: TreeTarget | null): void {
  const names = path.split('/');
  if (!names.every(isSafeComponent)) throw new Error(`not a path of a tree: ${JSON.stringify(path)}`);
  const last = names.pop() ?? '';
  let folder = root;
  for (const name of names) {
    const next = folder.has(name) ? folder.get(name) : new Map<string, TreeTarget | null | Edits>();
    if (!(next instanceof Map)) throw new Error(`edits of ${JSON.stringify(path)} and of a folder above it`);
    folder.set(name, next);
    folder = next;
  }
  if (folder.has(last)) throw new Error(`edits of ${JSON.stringify(path)} and of something below it`);
  folder.set(last, target === null ? null : { mode: target.mode, oid: parseOid(target.oid) });
}

function holdsTarget(edits: Edits): boolean {
  return [...edits.values()].some((edit) => (edit instanceof Map ? holdsTarget(edit) : edit !== null));
}
