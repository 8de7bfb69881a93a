import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { chmod, lstat, mkdir, readdir, readFile, readlink, realpath, writeFile } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import { promisify } from 'node:util';
import { onTestFinished } from 'vitest';
import { parseOid, type Oid } from '../../src/issue.js';
import type { Git, OpenedGit, TreeTarget } from '../../src/worktree/git-types.js';
import { openGit } from '../../src/worktree/git.js';
import { temporaryFolder } from './temp.js';

const exec = promisify(execFile);

/** A real repository of one test, with a person's checkout. */
export interface TestRepository {
  /** Temporary folder that holds everything, removed after the test. */
  readonly folder: string;
  /** The checkout (or the bare repository). */
  readonly path: string;
  /** The person's home, empty. */
  readonly home: string;
  /** What giro would have as its own environment there. */
  readonly own: Readonly<Record<string, string>>;
  /** Writes a file of the checkout with the folders above it. */
  write(path: string, content: string | Uint8Array, mode?: number): Promise<void>;
  /** Commits everything in the checkout and gives the commit. */
  commit(message: string): Promise<Oid>;
  /** Runs plain git in the checkout; fails when git does. Output without the last line end. */
  git(...args: readonly string[]): Promise<string>;
  /** The commit the checkout is on. */
  head(): Promise<Oid>;
  /**
   * Everything of the person's that giro must not change, one fact per line: refs outside giro's, every file of the git
   * dir but objects and worktrees, and every file of the checkout. Compare two with `toBe`.
   */
  fingerprint(): Promise<string>;
  readonly remove: () => Promise<void>;
}

/** What a test repository has at the start. */
export interface RepositorySetup {
  /** Committed as the first commit; a `README.md` when absent. `null`: no commit at all. */
  readonly files?: Readonly<Record<string, string>> | null;
  readonly branch?: string;
  readonly bare?: boolean;
  readonly objectFormat?: 'sha1' | 'sha256';
}

/** Makes a repository with no git config but its own, a fixed identity and fixed dates: equal content, equal names. */
export async function makeRepository(setup: RepositorySetup = {}): Promise<TestRepository> {
  const temporary = await temporaryFolder();
  const folder = await realpath(temporary.path);
  const path = join(folder, 'repo');
  const home = join(folder, 'home');
  await mkdir(path);
  await mkdir(home);
  const repository = new Repository(folder, path, home, () => temporary.remove());
  const { files = { 'README.md': '# Test\n' }, branch = 'main', bare = false, objectFormat = 'sha1' } = setup;
  await repository.git('init', '-q', '-b', branch, `--object-format=${objectFormat}`, ...(bare ? ['--bare'] : []));
  if (files !== null && !bare) {
    for (const [name, content] of Object.entries(files)) await repository.write(name, content);
    await repository.commit('start');
  }
  return repository;
}

/** Opens a repository as giro does for a run; closed after the test. */
export async function openRepository(repository: TestRepository, folder = repository.path): Promise<OpenedGit> {
  const opened = await openGit({ folder, own: repository.own, runFolder: join(repository.folder, 'run') });
  if (!opened.ok) throw new Error(JSON.stringify(opened.failure));
  onTestFinished(() => opened.value.close());
  return opened.value;
}

/** Writes files as a tree. */
export async function treeOf(git: Git, files: Readonly<Record<string, string | Uint8Array>>): Promise<Oid> {
  const edits = new Map<string, TreeTarget>();
  for (const [path, content] of Object.entries(files)) {
    edits.set(path, { mode: '100644', oid: await git.writeBlob(content) });
  }
  return git.editTree(git.emptyTree, edits);
}

/** Writes a commit with these files and nothing else. */
export async function commitOf(
  git: Git,
  files: Readonly<Record<string, string | Uint8Array>>,
  ...parents: readonly Oid[]
): Promise<Oid> {
  return git.writeCommit({ tree: await treeOf(git, files), parents, message: 'commit', at: 1_700_000_000_000 });
}

class Repository implements TestRepository {
  readonly folder: string;
  readonly path: string;
  readonly home: string;
  readonly own: Readonly<Record<string, string>>;
  readonly remove: () => Promise<void>;
  #seconds = Date.UTC(2024, 0, 1) / 1000;

  constructor(folder: string, path: string, home: string, remove: () => Promise<void>) {
    this.folder = folder;
    this.path = path;
    this.home = home;
    this.own = { PATH: '/usr/bin:/bin', HOME: home, TMPDIR: folder };
    this.remove = remove;
  }

  async write(path: string, content: string | Uint8Array, mode = 0o644): Promise<void> {
    const target = join(this.path, path);
    await mkdir(dirname(target), { recursive: true });
    await writeFile(target, content);
    await chmod(target, mode);
  }

  async commit(message: string): Promise<Oid> {
    await this.git('add', '-A');
    await this.git('commit', '-q', '--allow-empty', '-m', message);
    return this.head();
  }

  async git(...args: readonly string[]): Promise<string> {
    const date = `${String((this.#seconds += 60))} +0000`;
    const env = {
      ...this.own,
      LC_ALL: 'C.UTF-8',
      GIT_CONFIG_NOSYSTEM: '1',
      GIT_AUTHOR_NAME: 'Test',
      GIT_AUTHOR_EMAIL: 'test@localhost',
      GIT_AUTHOR_DATE: date,
      GIT_COMMITTER_NAME: 'Test',
      GIT_COMMITTER_EMAIL: 'test@localhost',
      GIT_COMMITTER_DATE: date,
    };
    const options = { cwd: this.path, env, maxBuffer: 64 * 1024 * 1024, timeout: 60_000 };
    const running = exec('git', [...args], options);
    // A hook that reads its input must come to its end.
    running.child.stdin?.end();
    const { stdout } = await running;
    return stdout.replace(/\n$/, '');
  }

  async head(): Promise<Oid> {
    return parseOid(await this.git('rev-parse', '--verify', 'HEAD'));
  }

  async fingerprint(): Promise<string> {
    const gitDir = await this.git('rev-parse', '--path-format=absolute', '--git-common-dir');
    const refs = (await this.git('for-each-ref', '--format=ref %(refname) %(objectname) %(symref)')).split('\n');
    const theirs = refs.filter(
      (line) => !/^ref refs\/(heads\/giro(?:-issue|-salvage)?\/|giro\/|notes\/giro )/.test(line),
    );
    const inside = await describeFolder(gitDir, isOfGiro);
    const files = await describeFolder(this.path, (path) => path === '.git' || path.startsWith('.git/'));
    return [...theirs, ...inside.map((line) => `git ${line}`), ...files.map((line) => `file ${line}`)].join('\n');
  }
}

/** What giro may change in the git dir; packed refs are compared ref by ref. */
function isOfGiro(path: string): boolean {
  const folders = ['objects', 'worktrees', 'giro', 'refs', 'packed-refs'];
  const logs = [
    'logs/refs/heads/giro-salvage',
    'logs/refs/heads/giro',
    'logs/refs/heads/giro-issue',
    'logs/refs/giro',
    'logs/refs/notes/giro',
  ];
  return [...folders, ...logs].some((folder) => path === folder || path.startsWith(`${folder}/`));
}

async function describeFolder(root: string, skip: (path: string) => boolean): Promise<readonly string[]> {
  const lines: string[] = [];
  const visit = async (path: string): Promise<void> => {
    const name = relative(root, path);
    if (name !== '' && skip(name)) return;
    const stats = await lstat(path);
    const mode = (stats.mode & 0o777).toString(8);
    if (stats.isDirectory()) {
      for (const entry of (await readdir(path)).sort()) await visit(join(path, entry));
    } else if (stats.isSymbolicLink()) lines.push(`${name} link ${await readlink(path)}`);
    else if (stats.isFile()) lines.push(`${name} ${mode} ${sha256(await readFile(path))}`);
    else lines.push(`${name} other`);
  };
  await visit(root);
  return lines;
}

function sha256(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}
