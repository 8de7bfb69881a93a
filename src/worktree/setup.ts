/**
 * What a folder gets beyond the files of its commit: copies and links from the user's checkout, then the `setup` command.
 * Done again only when what decides about it changed. What it makes is never staged.
 */
import { createHash, randomBytes } from 'node:crypto';
import { dirname, join } from 'node:path';
import picomatch from 'picomatch';
import type { Ended } from '../event.js';
import { failed, ok, unreachable, type Result } from '../failure.js';
import type { Oid } from '../issue.js';
import type { Clock } from '../platform/clock.js';
import type { Confinement } from '../platform/confinement.js';
import type { Environment } from '../platform/environment.js';
import { kindOf, readIfExists, readTail, writeAtomic } from '../platform/files.js';
import { makeFolder } from '../platform/folders.js';
import { runProcess } from '../platform/process.js';
import { tailLines } from '../platform/text.js';
import type { WorktreePolicy } from '../policy.js';
import {
  copySources,
  findSources,
  linkPaths,
  trackedPaths,
  untrackedPaths,
  type Source,
  type TrackedPaths,
} from './copies.js';
import type { Git } from './git-types.js';
import type { Slot } from './slots.js';

/** Why a folder could not be set up. */
export interface SetupFailure {
  readonly kind: 'setup-failed';
  readonly message: string;
  /** The last lines it printed. */
  readonly tail: string;
  /** The file with everything it printed. */
  readonly log: string;
}

/** A folder to set up, filled with the files of a tree. */
export interface SetupRequest {
  readonly folder: string;
  readonly tree: Oid;
  readonly slot: Slot;
  /** Name for the log. */
  readonly name: string;
  /** File in engine storage that remembers what was done in this folder. */
  readonly stamp: string;
  /** True: whatever the tree does not have is from an earlier set-up. */
  readonly pristine: boolean;
  /**
   * Called right before the command runs: ends what an earlier set-up runs there, and gives the folder a `.git` that is not the repository, since what package managers
   * run (`husky` and its like) writes into the git config it finds.
   */
  readonly isolate: () => Promise<void>;
}

/** What setting up left behind. */
export interface SetupResult {
  /** Topmost paths that it made, never to be staged. */
  readonly made: readonly string[];
  /** True when the command ran now: it may have rewritten tracked files. */
  readonly ran: boolean;
}

/** Ends what the run left in a folder, but for what its set-up runs when that `stays`, and gives who else is there. */
export type Vacate = (folder: string, setup: 'stays' | 'goes') => Promise<readonly unknown[]>;

/** Sets up one folder; after a failure it counts as not set up. */
export type Setup = (request: SetupRequest) => Promise<Result<SetupResult, SetupFailure>>;

/** What setting up needs. */
export interface SetupPorts {
  readonly git: Pick<Git, 'listTree'>;
  readonly policy: Pick<WorktreePolicy, 'setup' | 'setupTimeoutMs' | 'inputs' | 'copy' | 'link'>;
  /** The user's checkout; `null` when there is none (a bare repository): nothing to copy from. */
  readonly userTop: string | null;
  /** A shell up to its command line. */
  readonly shell: readonly [string, ...string[]];
  /** What gates see, for this slot. */
  readonly environment: (slot: Slot) => Environment;
  readonly logFolder: string;
  readonly graceMs: number;
  readonly signal: AbortSignal;
  readonly clock: Clock;
  /** Limits what the command starts. */
  readonly confinement?: Confinement;
  readonly notice: (message: string) => void;
  /** Hears that the command is started, since it may take long. */
  readonly started?: (message: string) => void;
}

interface Stamp {
  /** Empty: a set-up that was not finished. */
  readonly key: string;
  readonly made: readonly string[];
  /** What was there before an unfinished one, and so is not its doing. */
  readonly before?: readonly string[];
}

/** Reads what set-ups made in a folder so far. */
export async function madeBySetup(stamp: string): Promise<readonly string[]> {
  return (await readStamp(stamp))?.made ?? [];
}

/** Makes the set-up of a run. */
export function createSetup(ports: SetupPorts): Setup {
  const { setup, copy, link } = ports.policy;
  if (setup === undefined && copy.length === 0 && link.length === 0)
    return () => Promise.resolve(ok({ made: [], ran: false }));
  const noticed = new Set<string>();
  const once = (message: string): void => {
    if (!noticed.has(message)) ports.notice(message);
    noticed.add(message);
  };
  return (request) => setUp({ ...ports, notice: once }, request);
}

async function setUp(ports: SetupPorts, request: SetupRequest): Promise<Result<SetupResult, SetupFailure>> {
  const files = await ports.git.listTree(request.tree);
  const sources = ports.userTop === null ? [] : await findSources(ports.userTop, ports.policy.copy);
  const key = keyOf(ports.policy, files, sources);
  const last = await readStamp(request.stamp);
  const present = await presentOf(request.folder, last?.made ?? []);
  if (last?.key === key && present.length === last.made.length) return ok({ made: last.made, ran: false });
  const tracked = trackedPaths(files.map(({ path }) => path));
  const before = new Set(last?.before ?? (request.pristine ? [] : await untrackedPaths(request.folder, tracked)));
  await writeStamp(request.stamp, { key: '', made: present, before: [...before] });
  const brought = await bring(ports, { folder: request.folder, tracked, sources });
  const failure = await runCommand(ports, request);
  // Without a command, what was brought is all that is new.
  const found = ports.policy.setup === undefined ? [] : await untrackedPaths(request.folder, tracked);
  const made = [...new Set([...present, ...brought, ...found.filter((path) => !before.has(path))])].sort();
  // Never half-used: without its key the next use sets it up again.
  await writeStamp(request.stamp, { key: failure === null ? key : '', made });
  return failure === null ? ok({ made, ran: ports.policy.setup !== undefined }) : failed(failure);
}

/** Everything that decides whether what is there is still right. */
function keyOf(
  policy: SetupPorts['policy'],
  files: readonly { readonly path: string; readonly mode: string; readonly oid: Oid }[],
  sources: readonly Source[],
): string {
  const isInput = policy.inputs.length === 0 ? () => false : picomatch([...policy.inputs], { dot: true });
  const inputs = files.filter(({ path }) => isInput(path)).map(({ path, mode, oid }) => [path, mode, oid]);
  const facts = [
    policy.setup ?? null,
    inputs,
    sources.map(({ path, stamp }) => [path, stamp.size, stamp.modifiedMs]),
    policy.link,
  ];
  return createHash('sha256').update(JSON.stringify(facts)).digest('hex');
}

async function readStamp(path: string): Promise<Stamp | null> {
  const text = (await readIfExists(path))?.toString();
  if (text === undefined) return null;
  try {
    return parseStamp(JSON.parse(text));
  } catch {
    return null; // Cut off by a crash: as good as none.
  }
}

function parseStamp(value: unknown): Stamp | null {
  if (typeof value !== 'object' || value === null || !('key' in value) || !('made' in value)) return null;
  const { key, made } = value;
  if (typeof key !== 'string' || !Array.isArray(made)) return null;
  const before = 'before' in value && Array.isArray(value.before) ? { before: value.before.filter(isText) } : {};
  return { key, made: made.filter(isText), ...before };
}

function isText(value: unknown): value is string {
  return typeof value === 'string';
}

async function writeStamp(path: string, stamp: Stamp): Promise<void> {
  await makeFolder(dirname(path));
  await writeAtomic(path, JSON.stringify(stamp), { sync: false });
}

async function presentOf(folder: string, paths: readonly string[]): Promise<readonly string[]> {
  const kinds = await Promise.all(paths.map((path) => kindOf(join(folder, path))));
  return paths.filter((_, at) => kinds[at] !== null);
}

async function bring(
  { userTop, policy, notice }: SetupPorts,
  {
    folder,
    tracked,
    sources,
  }: { readonly folder: string; readonly tracked: TrackedPaths; readonly sources: readonly Source[] },
): Promise<readonly string[]> {
  if (userTop === null) return [];
  const copied = await copySources({ userTop, folder, tracked }, sources);
  const linked = await linkPaths({ userTop, folder, tracked }, policy.link);
  for (const reason of copied.omitted) notice(`not copied from your checkout: ${reason}`);
  for (const reason of linked.omitted) notice(`not linked to your checkout: ${reason}`);
  return [...copied.made, ...linked.made];
}

/** Runs the command, if there is one; `null` when it is done. */
async function runCommand(ports: SetupPorts, request: SetupRequest): Promise<SetupFailure | null> {
  const { setup } = ports.policy;
  if (setup === undefined) return null;
  const { folder, slot, name } = request;
  await request.isolate();
  await makeFolder(ports.logFolder);
  const log = join(ports.logFolder, `setup-${name}-${randomBytes(4).toString('hex')}.log`);
  ports.started?.(`setting up ${name}: ${setup}`);
  const { ended, met } = await runProcess({
    argv: [...ports.shell, setup],
    cwd: folder,
    env: {
      ...ports.environment(slot),
      CI: 'true',
      GIRO_SLOT: String(slot.number),
      GIRO_PORT_BASE: String(slot.portBase),
      TMPDIR: slot.temporary,
    },
    logFile: log,
    timeoutMs: ports.policy.setupTimeoutMs,
    graceMs: ports.graceMs,
    signal: ports.signal,
    clock: ports.clock,
    ...(ports.confinement === undefined ? {} : { confinement: ports.confinement }),
  });
  const trouble = troubleOf(ended);
  if (trouble === null) return null;
  const tail = tailLines(await readTail(log, 16_384), 40, 4_096);
  return {
    kind: 'setup-failed',
    message: `[worktree] setup: ${setup}: ${trouble}${met === null ? '' : `: ${met}`}`,
    tail,
    log,
  };
}

function troubleOf(ended: Ended): string | null {
  switch (ended.kind) {
    case 'exited':
      return ended.code === 0 ? null : `exit ${String(ended.code)}`;
    case 'signalled':
      return `ended by ${ended.signal}`;
    case 'timed-out':
      return `not done within ${String(Math.round(ended.limitMs / 1000))} s`;
    case 'stalled':
    case 'cancelled':
    case 'could-not-start':
      return ended.reason;
    default:
      return unreachable(ended);
  }
}

/** The gitignore pattern that means exactly this path of a folder. */
export function ignorePattern(path: string): string {
  return `/${path.replace(/[\\*?[]/g, '\\$&').replace(/ $/, '\\ ')}`;
}
