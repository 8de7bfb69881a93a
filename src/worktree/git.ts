/**
 * Opens a repository, and is the one file that runs git.
 *
 * Work on trees goes through a private git dir of giro's own (`git-private.ts`): its config, no hooks, the repository's
 * object store, and an index and a work tree named per call. What is planted in the repository (hooks, config, filters,
 * attributes files) is never read. Only refs and the registration of worktrees need the repository itself; those calls
 * run with its config silenced. Every call gets an environment built from nothing and a current folder outside every work
 * tree.
 */
import { randomBytes } from 'node:crypto';
import * as quick from 'node:fs';
import { constants } from 'node:fs';
import * as fs from 'node:fs/promises';
import { dirname, isAbsolute, join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { ok, type Failure, type Result } from '../failure.js';
import { systemClock } from '../platform/clock.js';
import { ObjectNames } from '../platform/durable-names.js';
import { kindOf } from '../platform/files.js';
import { createLauncher, type Launcher } from '../platform/launcher.js';
import { runPlumbing, startConversation, type Conversation } from '../platform/plumbing.js';
import { promised } from '../platform/promised.js';
import { ShortLock, type WhileAlone } from '../platform/short-lock.js';
import { printable } from '../platform/text.js';
import {
  gitCandidates,
  hardEnvironment,
  isNewEnough,
  oldestVersion,
  parseVersion,
  personEnvironment,
} from './git-environment.js';
import { contains } from './git-folders.js';
import { Repository } from './git-repository.js';
import {
  environmentFailure,
  GitError,
  type GitCall,
  type GitMachine,
  type GitOutput,
  type LooseObject,
  type OpenedGit,
  type OpenRequest,
  type Place,
} from './git-types.js';
import { looseFile } from './objects.js';

/** Opens the repository that holds a folder; what is missing comes back as an environment failure with its fix. */
export async function openGit(request: OpenRequest): Promise<Result<OpenedGit>> {
  const folder = resolve(request.folder);
  const wrong = await wrongFolder(folder);
  if (wrong !== null) return wrong;
  const binary = await findGit(request.own, folder);
  if (binary === null) return environmentFailure('git is not installed', `Install git ${oldestVersion} or newer.`);
  const machine = new Machine(binary, request.own, { ...request, manyCalls: request.runFolder !== null });
  // A command that only reads does without the check: it would double its start, and old versions can read.
  const [place, version] = await Promise.all([
    discover(machine, folder),
    request.runFolder === null ? '' : readVersion(machine),
  ]);
  if (request.runFolder !== null && !isNewEnough(version)) {
    return environmentFailure(`git ${version} is too old`, `Install git ${oldestVersion} or newer.`);
  }
  if (!place.ok) return place;
  const { runFolder: wanted } = request;
  const runFolder = typeof wanted === 'function' ? wanted(place.value.commonDir) : wanted;
  const repository = new Repository({ machine, place: place.value, version, runFolder });
  const user = await repository.openUser();
  if (user !== null) return ok(Object.assign(repository, { user }));
  await repository.close();
  return environmentFailure('this repository has no commit yet', 'Make one first: git add -A && git commit');
}

/** Finds git, with its version; `null`: there is none. */
export async function findGitVersion(
  own: OpenRequest['own'],
  folder: string,
): Promise<{ readonly path: string; readonly version: string } | null> {
  const here = (await kindOf(resolve(folder))) === null ? '/' : resolve(folder);
  const path = await findGit(own, here);
  return path === null ? null : { path, version: await readVersion(new Machine(path, own)) };
}

async function wrongFolder(folder: string): Promise<ReturnType<typeof environmentFailure> | null> {
  const stats = await fs.stat(folder).catch(() => null);
  if (stats?.isDirectory() === true) return null;
  const message = `${folder} ${stats === null ? 'does not exist' : 'is not a folder'}`;
  return environmentFailure(message, 'Start giro inside a repository.');
}

/** What git says about a repository before there is anything to run in it. */
export interface RepositoryDescription {
  readonly root: string;
  /** False: the folder is in none yet, and is the root of what can become one. */
  readonly isRepository: boolean;
  /** Where git looks for hooks, `core.hooksPath` of the person considered; `null`: there is no repository. */
  readonly hooksFolder: string | null;
  readonly hasCommit: boolean;
}

/** Describes the repository whose checkout holds a folder, with or without commits, or that there is none; it runs nothing that is in it. */
export async function describeRepository(
  request: Pick<OpenRequest, 'folder' | 'own'>,
): Promise<Result<RepositoryDescription, Extract<Failure, { kind: 'environment' }>>> {
  const folder = resolve(request.folder);
  const wrong = await wrongFolder(folder);
  if (wrong !== null) return wrong;
  const binary = await findGit(request.own, folder);
  if (binary === null) return environmentFailure('git is not installed', `install git ${oldestVersion} or newer`);
  const machine = new Machine(binary, request.own);
  const ask = (cwd: string, ...args: string[]): Promise<GitOutput> =>
    machine.run({ args: ['rev-parse', ...args], accept: [0, 128] }, cwd, machine.personEnvironment);
  const top = await ask(folder, '--show-toplevel');
  if (top.code !== 0) {
    if ((await repositoryAbove(folder)) !== null) return noCheckout(folder, top.stderr);
    return ok({ root: folder, isRepository: false, hooksFolder: null, hasCommit: false });
  }
  const root = top.stdout.toString().replace(/\r?\n$/, '');
  // From the root, so that both paths are spelled alike where a link leads to it. Without a commit the last question fails,
  // after the first was answered.
  const [hooks = '', head = ''] = (await ask(root, '--git-path', 'hooks', 'HEAD^{commit}', '--')).stdout
    .toString()
    .split('\n');
  const hasCommit = /^[0-9a-f]{40,64}$/.test(head);
  return ok({ root, isRepository: true, hooksFolder: resolve(root, hooks), hasCommit });
}

/** With a .git above, git has a reason of its own to refuse: an owner, a broken link, no work tree. */
function noCheckout(folder: string, stderr: string): ReturnType<typeof environmentFailure> {
  const reason = printable(stderr.split('\n')[0] ?? '').replace(/^fatal: /, '');
  const message = `${folder} is not inside a checkout that git accepts: ${reason}`;
  return environmentFailure(message, `run git status in ${folder}: git says what it needs`);
}

/** Makes a repository of the files in a folder, with one commit on `main`, as somebody who tries giro would. */
export async function createRepository(request: {
  readonly folder: string;
  readonly own: OpenRequest['own'];
  readonly message: string;
}): Promise<Result<void>> {
  const binary = await findGit(request.own, request.folder);
  if (binary === null) return environmentFailure('git is not installed', `Install git ${oldestVersion} or newer.`);
  const machine = new Machine(binary, request.own);
  const steps = [
    ['init', '--quiet', '--template=', '--initial-branch=main', '.'],
    ['add', '--all', '.'],
    ['commit', '--quiet', '--no-gpg-sign', '--message', request.message],
  ];
  for (const args of steps) await machine.run({ args }, request.folder, machine.environment);
  return ok(undefined);
}

async function findGit(own: OpenRequest['own'], folder: string): Promise<string | null> {
  const root = await repositoryAbove(folder);
  const isForeign = (path: string): boolean => root === null || !contains(root, path);
  for (const path of gitCandidates(own['PATH'] ?? '', isForeign)) {
    try {
      await fs.access(path, constants.X_OK);
      const real = await fs.realpath(path);
      // A link may lead back into the repository.
      if (isForeign(real) && (await fs.stat(real)).isFile()) return path;
    } catch {
      // Not there; the next one may be.
    }
  }
  return null;
}

/** The nearest folder, going up, that holds something called `.git` or looks like a git dir itself. */
async function repositoryAbove(folder: string): Promise<string | null> {
  for (let at = await fs.realpath(folder); ; at = dirname(at)) {
    if ((await kindOf(join(at, '.git'))) !== null) return at;
    if ((await kindOf(join(at, 'HEAD'))) === 'file' && (await kindOf(join(at, 'objects'))) === 'folder') return at;
    if (at === dirname(at)) return null;
  }
}

async function readVersion(machine: Machine): Promise<string> {
  const { stdout } = await machine.run({ args: ['version'] }, '/', machine.environment);
  return parseVersion(stdout.toString());
}

/**
 * Finds the repository as the person's own git would, with their `safe.directory`; `rev-parse` runs nothing. Later calls
 * name the git dir, which git then trusts.
 */
async function discover(machine: Machine, folder: string): Promise<Result<Place>> {
  const paths = ['--path-format=absolute', '--git-common-dir', '--git-dir'];
  const args = ['rev-parse', '--is-bare-repository', ...paths, '--show-object-format', '--show-toplevel'];
  // In a bare repository the last question fails, after the others were answered.
  const output = await machine.run({ args, accept: [0, 128] }, folder, machine.personEnvironment);
  const [bare, commonDir, gitDir, hash, topLevel = ''] = output.stdout.toString().split('\n');
  if (commonDir === undefined || gitDir === undefined || (hash !== 'sha1' && hash !== 'sha256')) {
    return explainRefusal(folder, output.stderr);
  }
  if (bare !== 'true' && topLevel === '') {
    return environmentFailure(`${folder} is inside git's own folder`, 'Start giro in the folder of your files.');
  }
  const reftable = (await kindOf(join(commonDir, 'reftable'))) !== null;
  return ok({ commonDir, gitDir, hash, topLevel: topLevel === '' ? null : topLevel, reftable });
}

async function explainRefusal(folder: string, stderr: string): Promise<ReturnType<typeof environmentFailure>> {
  const root = await repositoryAbove(folder);
  if (root === null) {
    return environmentFailure(`${folder} is not in a git repository`, 'Make one: git init && git add -A && git commit');
  }
  if ((await fs.lstat(root)).uid !== process.getuid?.()) {
    const hint = `If you trust it: git config --global --add safe.directory '${root}'`;
    return environmentFailure(`the repository ${root} belongs to another user, so git does not read it`, hint);
  }
  return environmentFailure(
    `git cannot read the repository ${root}: ${stderr.trim()}`,
    'Mend it until `git status` works there.',
  );
}

/**
 * Generous: to fill a folder with a hundred thousand files takes seconds, on a slow disk minutes. But whatever lies in a
 * folder, giro does not wait for ever.
 */
const defaultTimeoutMs = 15 * 60_000;

interface MachineUse extends Pick<OpenRequest, 'callTimeoutMs'> {
  readonly manyCalls?: boolean;
}

/** Starts processes and writes files for everything beside this file. */
class Machine implements GitMachine {
  readonly binary: string;
  readonly own: OpenRequest['own'];
  readonly environment: Readonly<Record<string, string>>;
  readonly personEnvironment: Readonly<Record<string, string>>;
  readonly #launcher: Launcher;
  readonly #timeoutMs: number;
  #names: ObjectNames | null = null;
  started = 0;

  constructor(binary: string, own: OpenRequest['own'], use: MachineUse = {}) {
    this.binary = binary;
    this.own = own;
    this.environment = hardEnvironment(dirname(binary));
    this.personEnvironment = personEnvironment(this.environment, own);
    // A command that only reads starts too few processes for a shell to pay.
    this.#timeoutMs = use.callTimeoutMs ?? defaultTimeoutMs;
    this.#launcher =
      use.manyCalls === true ? createLauncher(this.environment) : { run: runPlumbing, close: () => Promise.resolve() };
  }

  async run(call: GitCall, cwd: string, env: Readonly<Record<string, string>>): Promise<GitOutput> {
    this.started++;
    const { args, input, maxBytes, accept = [0] } = call;
    const result = await this.#launcher.run({
      file: this.binary,
      args,
      cwd,
      env: { ...env, ...call.env },
      ...(input === undefined ? {} : { input }),
      ...(maxBytes === undefined ? {} : { maxBytes }),
      timeoutMs: this.#timeoutMs,
    });
    if (args.some((arg) => writers.has(arg))) this.#names?.touchedByGit();
    // Cut at its limit, which ends it: the caller has what it asked for.
    const cut = maxBytes !== undefined && result.stdout.length >= maxBytes;
    const code = cut ? 0 : result.code;
    if (code === null || !accept.includes(code)) throw new GitError(args, code, result.stderr);
    return { code, stdout: result.stdout, stderr: result.stderr };
  }

  converse(args: readonly string[], cwd: string, env: Readonly<Record<string, string>>): Conversation {
    this.started++;
    return startConversation({ file: this.binary, args, cwd, env });
  }

  count(): void {
    this.started++;
  }

  alone(commonDir: string): WhileAlone {
    const path = join(commonDir, 'giro', 'short-lock', 'owner.json');
    const lock = new ShortLock({ path, guards: 'refs and worktrees', clock: systemClock });
    return (work) => lock.whileAlone(work);
  }

  close(): Promise<void> {
    return this.#launcher.close();
  }

  realPath(path: string): Promise<string> {
    return promised(() => quick.realpathSync.native(path));
  }

  stamp(path: string): Promise<string | null> {
    return promised(() => {
      try {
        const stats = quick.statSync(path, { bigint: true, throwIfNoEntry: false });
        return stats === undefined ? null : [stats.ino, stats.size, stats.mtimeNs, stats.ctimeNs].join(':');
      } catch (error) {
        if (hasCode(error, 'ENOTDIR')) return null;
        throw error;
      }
    });
  }

  temporaryFolder(): Promise<string> {
    const parent = this.own['TMPDIR'] ?? '';
    return fs.mkdtemp(join(isAbsolute(parent) ? parent : '/tmp', 'giro-git-'));
  }

  async storeLoose({ objectsDir, oid, kind, data, shared }: LooseObject): Promise<void> {
    const folder = join(objectsDir, oid.slice(0, 2));
    const path = join(folder, oid.slice(2));
    if (makeYoung(path)) {
      // Whoever wrote it may have died before its name was durable.
      this.objectNames(objectsDir).touched(folder);
      return;
    }
    const file = await looseFile(kind, data);
    // The name git's own `gc` recognises as litter should giro die before the rename.
    const temporary = join(folder, `tmp_obj_${randomBytes(9).toString('hex')}`);
    const modes = sharedModes(shared);
    const fd = openIn(folder, temporary, modes.folder);
    try {
      writeAll(fd, file);
      if (modes.file !== 0) quick.fchmodSync(fd, quick.fstatSync(fd).mode | modes.file);
      await syncLater(fd);
    } finally {
      quick.closeSync(fd);
    }
    quick.renameSync(temporary, path);
    this.objectNames(objectsDir).touched(folder);
  }

  objectNames(objectsDir: string): ObjectNames {
    return (this.#names ??= new ObjectNames(objectsDir));
  }
}

/** Commands that write objects. */
const writers = new Set(['add', 'write-tree', 'merge-tree', 'update-index']);

const syncLater = promisify(quick.fsync);

function writeAll(fd: number, pieces: readonly Uint8Array[]): void {
  let written = quick.writevSync(fd, pieces);
  for (const piece of pieces) {
    // What one call did not take, as on a disk that is filling up.
    for (let done = Math.min(written, piece.length); done < piece.length;) done += quick.writeSync(fd, piece, done);
    written = Math.max(0, written - piece.length);
  }
}

/** Keeps an object that exists from being pruned as old; false when it has to be written. */
function makeYoung(path: string): boolean {
  // An error takes longer than a look.
  if (quick.lstatSync(path, { throwIfNoEntry: false }) === undefined) return false;
  const now = Date.now() / 1000;
  try {
    quick.utimesSync(path, now, now);
    return true;
  } catch {
    // Absent, or another user's: writing it again replaces it by the same content.
    return false;
  }
}

function openIn(folder: string, path: string, folderBits: number): number {
  try {
    return quick.openSync(path, 'wx', 0o444);
  } catch (error) {
    if (!hasCode(error, 'ENOENT')) throw error;
    quick.mkdirSync(folder, { recursive: true });
    if (folderBits !== 0) quick.chmodSync(folder, quick.statSync(folder).mode | folderBits);
    return quick.openSync(path, 'wx', 0o444);
  }
}

/** Permission bits that `core.sharedRepository` adds. */
function sharedModes(shared: string | null): { readonly file: number; readonly folder: number } {
  switch (shared?.toLowerCase() ?? 'umask') {
    case 'group':
    case 'true':
    case '1':
      return { file: 0o440, folder: 0o2770 };
    case 'all':
    case 'world':
    case 'everybody':
    case '2':
      return { file: 0o444, folder: 0o2775 };
    default:
      return { file: 0, folder: 0 };
  }
}

function hasCode(error: unknown, ...codes: readonly string[]): boolean {
  return error instanceof Error && 'code' in error && codes.includes(String(error.code));
}
