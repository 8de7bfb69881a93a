/**
 * Reads refs in process and moves giro's own by compare-and-swap.
 *
 * 1. No ref outside `refs/heads/giro/`, `refs/heads/giro-issue/`, `refs/heads/giro-salvage/`, `refs/giro/` and `refs/notes/giro` is ever written (`assertOwnRef`).
 * 2. A ref moves only from the value its caller knew, one ref per transaction, never through a symbolic ref.
 * 3. Moves come one after the other, also between processes of giro. Others, such as the person's git, are met by git's own
 *    locks.
 */
import { join } from 'node:path';
import { failed, ok, type Failure } from '../failure.js';
import { parseOid, type Oid } from '../issue.js';
import { kindOf, readIfExists, readManyIfExist } from '../platform/files.js';
import { listFolder } from '../platform/folders.js';
import type { Conversation } from '../platform/plumbing.js';
import type { WhileAlone } from '../platform/short-lock.js';
import { parsePackedRefs } from './git-parse.js';
import type { MoveResult, RunGit } from './git-types.js';
import { Turns } from './turns.js';

const ownPrefixes = ['refs/heads/giro/', 'refs/heads/giro-issue/', 'refs/heads/giro-salvage/', 'refs/giro/'];
const notesRef = 'refs/notes/giro';

/** Throws unless giro may write the ref: the one place that decides it. */
function assertOwnRef(ref: string): void {
  assertRefName(ref);
  if (ref !== notesRef && !ownPrefixes.some((prefix) => ref.startsWith(prefix)))
    throw new Error(`not a ref of giro: ${ref}`);
}

/** Throws unless the text is a full ref name as `check-ref-format` wants it. */
export function assertRefName(ref: string): void {
  // Control characters, space and the characters that mean something in a revision.
  const forbidden = /[\p{Cc} ~^:?*[\\]|\.\.|@\{/u;
  const components = ref.split('/');
  const sound =
    components[0] === 'refs' &&
    components.length > 2 &&
    !forbidden.test(ref) &&
    !ref.endsWith('.') &&
    components.every((name) => name !== '' && !name.startsWith('.') && !name.endsWith('.lock'));
  if (!sound) throw new Error(`not a full ref name: ${JSON.stringify(ref)}`);
}

/** A ref as stored: an object, another ref, or nothing. */
export type StoredRef = { readonly oid: Oid } | { readonly symbolic: string } | null;

/** Ways to read refs; `git.ts` picks the one that fits the repository. */
export interface RefReader {
  read(ref: string): Promise<StoredRef>;
  list(prefix: string): Promise<ReadonlyMap<string, Oid>>;
  names(prefix: string): Promise<readonly string[]>;
}

/** Reads the value of `HEAD` or of a loose ref. */
export function parseRefFile(text: string): StoredRef {
  const symbolic = /^ref:\s*(\S+)\s*$/.exec(text);
  if (symbolic?.[1] !== undefined) return { symbolic: symbolic[1] };
  const oid = /^([0-9a-f]{40}|[0-9a-f]{64})\s*$/.exec(text);
  return oid?.[1] === undefined ? null : { oid: parseOid(oid[1]) };
}

/** What reading ref files needs beyond `platform/files`. */
export interface RefFilePorts {
  readonly commonDir: string;
  /** Changes whenever the file is replaced; `null` when it is absent. */
  readonly stamp: (path: string) => Promise<string | null>;
}

/** Reads loose refs and `packed-refs` (the usual storage). */
export class FileRefs implements RefReader {
  readonly #ports: RefFilePorts;
  #packed: { readonly stamp: string | null; readonly refs: ReadonlyMap<string, Oid> } | null = null;

  constructor(ports: RefFilePorts) {
    this.#ports = ports;
  }

  async read(ref: string): Promise<StoredRef> {
    // Loose first: `pack-refs` writes the packed file before it removes the loose one, so no ref is missed.
    return (await this.#loose(ref)) ?? this.#fromPacked(ref);
  }

  async list(prefix: string): Promise<ReadonlyMap<string, Oid>> {
    const folder = prefix.replace(/\/+$/, '');
    const loose = new Map<string, StoredRef>();
    await this.#collect(folder, loose);
    const refs = new Map<string, Oid>();
    for (const [name, oid] of await this.#packedRefs()) {
      if (name.startsWith(`${folder}/`) && !loose.has(name)) refs.set(name, oid);
    }
    for (const [name, value] of loose) if (value !== null && 'oid' in value) refs.set(name, value.oid);
    return sorted(refs);
  }

  async names(prefix: string): Promise<readonly string[]> {
    const folder = prefix.replace(/\/+$/, '');
    const packed = [...(await this.#packedRefs()).keys()].filter((name) => name.startsWith(`${folder}/`));
    return [...new Set([...packed, ...(await this.#looseNames(folder))])].sort();
  }

  async #looseNames(folder: string): Promise<readonly string[]> {
    const names: string[] = [];
    for (const { name, kind } of await listFolder(join(this.#ports.commonDir, folder))) {
      if (kind === 'folder') names.push(...(await this.#looseNames(`${folder}/${name}`)));
      else if (!name.endsWith('.lock')) names.push(`${folder}/${name}`);
    }
    return names;
  }

  async #loose(ref: string): Promise<StoredRef> {
    const path = join(this.#ports.commonDir, ref);
    // A ref may be a folder of other refs; a symbolic link was a way to write a symbolic ref once.
    const kind = await kindOf(path);
    if (kind === null || kind === 'folder') return null;
    if (kind === 'link') return { symbolic: path };
    return readLoose(path, await readIfExists(path));
  }

  /** All of a folder at once: there may be thousands. */
  async #collect(folder: string, into: Map<string, StoredRef>): Promise<void> {
    const entries = (await listFolder(join(this.#ports.commonDir, folder))).filter(
      ({ name }) => !name.endsWith('.lock'),
    );
    const files = entries.filter(({ kind }) => kind === 'file').map(({ name }) => `${folder}/${name}`);
    const paths = files.map((ref) => join(this.#ports.commonDir, ref));
    readManyIfExist(paths).forEach((bytes, at) => {
      // A ref that was packed and removed between listing and reading is answered by `packed-refs`.
      const value = readLoose(paths[at] ?? '', bytes);
      if (value !== null) into.set(files[at] ?? '', value);
    });
    for (const { name, kind } of entries) {
      const ref = `${folder}/${name}`;
      if (kind === 'folder') await this.#collect(ref, into);
      else if (kind !== 'file') into.set(ref, await this.#loose(ref));
    }
  }

  async #fromPacked(ref: string): Promise<StoredRef> {
    const oid = (await this.#packedRefs()).get(ref);
    return oid === undefined ? null : { oid };
  }

  async #packedRefs(): Promise<ReadonlyMap<string, Oid>> {
    const path = join(this.#ports.commonDir, 'packed-refs');
    const stamp = await this.#ports.stamp(path);
    if (this.#packed?.stamp !== stamp) {
      const text = (await readIfExists(path))?.toString() ?? '';
      this.#packed = { stamp, refs: parsePackedRefs(text) };
    }
    return this.#packed.refs;
  }
}

function readLoose(path: string, bytes: Buffer | null): StoredRef {
  if (bytes === null) return null;
  const text = bytes.toString('latin1');
  const value = parseRefFile(text);
  if (value === null) throw new Error(`damaged ref ${path}: ${JSON.stringify(text.slice(0, 80))}`);
  return value;
}

/** Reads refs through `for-each-ref`, whatever their storage (reftable). */
export class ProcessRefs implements RefReader {
  readonly #run: RunGit;

  constructor(run: RunGit) {
    this.#run = run;
  }

  async read(ref: string): Promise<StoredRef> {
    return (await this.#query(ref)).get(ref) ?? null;
  }

  async list(prefix: string): Promise<ReadonlyMap<string, Oid>> {
    const refs = new Map<string, Oid>();
    for (const [name, value] of await this.#query(prefix)) if ('oid' in value) refs.set(name, value.oid);
    return sorted(refs);
  }

  async names(prefix: string): Promise<readonly string[]> {
    return [...(await this.#query(prefix)).keys()].sort();
  }

  async #query(pattern: string): Promise<ReadonlyMap<string, { oid: Oid } | { symbolic: string }>> {
    const { stdout } = await this.#run({
      args: ['for-each-ref', '--format=%(refname)%00%(objectname)%00%(symref)', pattern],
    });
    const refs = new Map<string, { oid: Oid } | { symbolic: string }>();
    for (const line of stdout.toString().split('\n')) {
      const [name = '', oid = '', symbolic = ''] = line.split('\0');
      if (name !== '') refs.set(name, symbolic === '' ? { oid: parseOid(oid) } : { symbolic });
    }
    return refs;
  }
}

function sorted(refs: ReadonlyMap<string, Oid>): ReadonlyMap<string, Oid> {
  return new Map([...refs].sort(([left], [right]) => (left < right ? -1 : 1)));
}

/** Moves giro's refs through one long-lived `update-ref --stdin`. */
export class RefMover {
  readonly #start: () => Promise<Conversation>;
  readonly #read: (ref: string) => Promise<StoredRef>;
  readonly #alone: WhileAlone;
  readonly #turns = new Turns();
  #conversation: Conversation | null = null;

  constructor(start: () => Promise<Conversation>, read: (ref: string) => Promise<StoredRef>, alone: WhileAlone) {
    this.#start = start;
    this.#read = read;
    this.#alone = alone;
  }

  async move(ref: string, to: Oid | null, from: Oid | null): Promise<MoveResult> {
    assertOwnRef(ref);
    return this.#turns.take(async () => {
      const moved = await this.#alone(() => this.#move(ref, to, from));
      return moved.ok ? moved.value : failed({ kind: 'ref-refused', ref, message: sentence(moved.failure) });
    });
  }

  async #move(ref: string, to: Oid | null, from: Oid | null): Promise<MoveResult> {
    const before = await this.#check(ref, from);
    if (before !== null || to === from) return before ?? ok(undefined);
    const command = instruction(ref, to, from);
    let message = await this.#transact(command);
    // Git says nothing when it was ended from outside, maybe long ago: then the ref tells whether it moved, and if not, a
    // second process may move it.
    if (message === '' && !(await this.#holds(ref, to))) message = await this.#transact(command);
    if (message === null || (message === '' && (await this.#holds(ref, to)))) return ok(undefined);
    const refusal = { kind: 'ref-refused', ref, message: message === '' ? 'git was ended twice' : message } as const;
    return (await this.#check(ref, from)) ?? failed(refusal);
  }

  /** Why a ref cannot move from a value; `null` when nothing stands against it. */
  async #check(ref: string, from: Oid | null): Promise<MoveResult | null> {
    const stored = await this.#read(ref);
    if (stored !== null && 'symbolic' in stored) {
      return failed({ kind: 'ref-refused', ref, message: `${ref} is a symbolic ref to ${stored.symbolic}` });
    }
    const actual = stored?.oid ?? null;
    return actual === from ? null : failed({ kind: 'ref-moved', ref, expected: from, actual });
  }

  async #holds(ref: string, value: Oid | null): Promise<boolean> {
    const stored = await this.#read(ref);
    return stored === null ? value === null : 'oid' in stored && stored.oid === value;
  }

  /** `null` when the transaction was committed, else what git said. */
  async #transact(command: string): Promise<string | null> {
    const conversation = (this.#conversation ??= await this.#start());
    conversation.write(`start\noption no-deref\n${command}\nprepare\ncommit\n`);
    for (const step of ['start', 'prepare', 'commit']) {
      if ((await conversation.readLine()) !== `${step}: ok`) {
        // A refused transaction ends the process.
        this.#conversation = null;
        await conversation.close();
        return complaint(conversation.stderrTail());
      }
    }
    return null;
  }

  async close(): Promise<void> {
    await this.#turns.over();
    await this.#conversation?.close();
    this.#conversation = null;
  }
}

function sentence(failure: Failure): string {
  if (failure.kind === 'diagnostics') return failure.kind;
  return failure.hint === undefined ? failure.message : `${failure.message}; ${failure.hint}`;
}

/** What git refuses for; empty when it only ended (hints and warnings do not count). */
function complaint(stderr: string): string {
  const lines = stderr.split('\n').filter((line) => /^(fatal|error): /.test(line));
  return lines.map((line) => line.replace(/^\w+: /, '').trim()).join('; ');
}

function instruction(ref: string, to: Oid | null, from: Oid | null): string {
  if (to === null) return `delete ${ref} ${from ?? ''}`;
  return from === null ? `create ${ref} ${to}` : `update ${ref} ${to} ${from}`;
}
