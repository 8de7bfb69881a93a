/** Reads what `giro init` decides from: the repository and the parts of the project that speak about tests and hooks. */
import { constants } from 'node:fs';
import { access } from 'node:fs/promises';
import path from 'node:path';
import { failed, ok, type Failure, type Result } from '../failure.js';
import { childEnvironment } from '../platform/environment.js';
import { kindOf, listFolder, readIfExists } from '../platform/files.js';
import { runPlumbing } from '../platform/plumbing.js';
import { printable } from '../platform/text.js';
import { specsFolder } from '../spec.js';
import { filesOfInterest, type HookFile, type Project } from './detect.js';

/** Something around giro that keeps it from starting. */
export type EnvironmentFailure = Extract<Failure, { kind: 'environment' }>;

type Own = Readonly<Record<string, string | undefined>>;

/** What git says about the repository. */
export interface Repository {
  readonly root: string;
  /** Where git looks for hooks, `core.hooksPath` considered. */
  readonly hooksFolder: string;
  readonly hasCommit: boolean;
}

/** Finds the repository whose checkout holds `folder`. */
export async function openRepository(start: string, own: Own): Promise<Result<Repository, EnvironmentFailure>> {
  const folder = path.resolve(start);
  const env = { ...childEnvironment(own), LC_ALL: 'C', GIT_OPTIONAL_LOCKS: '0', GIT_TERMINAL_PROMPT: '0' };
  const git = (cwd: string, ...args: readonly string[]) =>
    runPlumbing({ file: 'git', args, env, cwd, maxBytes: 64 * 1024 });
  if ((await git(folder, '--version')).code !== 0) {
    return environment('git is not installed, or not on the PATH', 'install git 2.38 or newer');
  }
  const top = await git(folder, 'rev-parse', '--show-toplevel');
  if (top.code !== 0) return noCheckout(folder, top.stderr);
  const root = firstLine(top.stdout);
  // From the root, so that both paths are spelled alike where a link leads to it.
  const hooks = await git(root, 'rev-parse', '--git-path', 'hooks');
  const head = await git(folder, 'rev-parse', '--verify', '--quiet', 'HEAD^{commit}');
  const hooksFolder = path.resolve(root, firstLine(hooks.stdout));
  return ok({ root, hooksFolder, hasCommit: head.code === 0 });
}

async function noCheckout(folder: string, stderr: string): Promise<Result<never, EnvironmentFailure>> {
  const reason = printable(stderr.split('\n')[0] ?? '').replace(/^fatal: /, '');
  const message = `${folder} is not inside a checkout that git accepts: ${reason}`;
  // With a .git above, git has a reason of its own to refuse: an owner, a broken link, no work tree.
  if (await hasGitAbove(folder)) return environment(message, `run git status in ${folder}: git says what it needs`);
  return environment(
    message,
    'go to your project, or make it a repository: git init && git add . && git commit -m Start',
  );
}

async function hasGitAbove(folder: string): Promise<boolean> {
  if ((await kindOf(path.join(folder, '.git'))) !== null) return true;
  const above = path.dirname(folder);
  return above !== folder && hasGitAbove(above);
}

function environment(message: string, hint: string): Result<never, EnvironmentFailure> {
  return failed({ kind: 'environment', message, hint });
}

function firstLine(bytes: Buffer): string {
  return bytes.toString('utf8').replace(/\r?\n$/, '');
}

/** Reads the project; what is not a regular file of a sensible size counts as not there. */
export async function readProject(repository: Repository, own: Own): Promise<Project> {
  const { root, hasCommit } = repository;
  const top = await listFolder(root);
  const texts = await Promise.all(
    filesOfInterest.map(async (name) => [name, await textOf(path.join(root, name))] as const),
  );
  const testFolders = await Promise.all(['tests', 'test'].map((name) => namesBelow(root, name)));
  return {
    name: path.basename(root),
    names: new Set(top.map(({ name }) => name)),
    files: new Map(texts.flatMap(([name, text]) => (text === null ? [] : [[name, text]]))),
    testNames: testFolders.flat(),
    hooks: await readHooks(repository),
    specs: await readSpecs(root),
    hasCommit,
    hasClaude: await isOnPath('claude', own['PATH'] ?? ''),
  };
}

/** Text of a regular file of a size that a person writes; null for everything else. */
async function textOf(file: string): Promise<string | null> {
  if ((await kindOf(file)) !== 'file') return null;
  const bytes = await readIfExists(file);
  return bytes === null || bytes.length > 1024 * 1024 ? null : bytes.toString('utf8');
}

async function namesBelow(root: string, folder: string): Promise<readonly string[]> {
  return (await listFolder(path.join(root, folder))).map(({ name }) => `${folder}/${name}`);
}

async function readSpecs(root: string): Promise<readonly string[]> {
  const folders = (await listFolder(path.join(root, specsFolder))).filter(({ kind }) => kind === 'folder');
  const complete = await Promise.all(
    folders.map(async ({ name }) =>
      (await kindOf(path.join(root, specsFolder, name, 'SPEC.md'))) === 'file' ? [name] : [],
    ),
  );
  return complete.flat();
}

/** husky's own folder `.husky/_` holds stubs only; what they call lies beside it. */
async function readHooks({ root, hooksFolder }: Repository): Promise<readonly HookFile[]> {
  const folders = new Set([
    path.join(root, '.husky'),
    ...(hooksFolder.endsWith(path.join('.husky', '_')) ? [] : [hooksFolder]),
  ]);
  const lists = await Promise.all([...folders].map((folder) => readHookFolder(root, folder)));
  return lists.flat();
}

async function readHookFolder(root: string, folder: string): Promise<readonly HookFile[]> {
  const inside = path.relative(root, folder);
  const tracked = !inside.startsWith('..') && !path.isAbsolute(inside) && !inside.split(path.sep).includes('.git');
  const names = (await listFolder(folder)).map(({ name }) => name).filter((name) => /^[a-z-]+$/.test(name));
  const hooks = await Promise.all(
    names.map(async (name) => {
      const text = await textOf(path.join(folder, name));
      const shown = inside.startsWith('..') ? folder : inside;
      return text === null ? [] : [{ path: path.join(shown, name), text, tracked }];
    }),
  );
  return hooks.flat();
}

async function isOnPath(program: string, searchPath: string): Promise<boolean> {
  const folders = searchPath.split(path.delimiter).filter((folder) => path.isAbsolute(folder));
  const found = await Promise.all(
    folders.map((folder) =>
      access(path.join(folder, program), constants.X_OK).then(
        () => true,
        () => false,
      ),
    ),
  );
  return found.includes(true);
}
