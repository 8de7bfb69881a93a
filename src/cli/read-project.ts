/** Reads what `giro init` decides from: the repository and the parts of the project that speak about tests and hooks. */
import { constants } from 'node:fs';
import { access } from 'node:fs/promises';
import path from 'node:path';
import type { Failure } from '../failure.js';
import { kindOf, readIfExists } from '../platform/files.js';
import { listFolder } from '../platform/folders.js';
import { specsFolder } from '../spec.js';
import type { RepositoryDescription } from '../worktree/git.js';
import { filesOfInterest, type HookFile, type Project } from './detect.js';

/** Something around giro that keeps it from starting. */
export type EnvironmentFailure = Extract<Failure, { kind: 'environment' }>;

type Own = Readonly<Record<string, string | undefined>>;

/** Reads the project; what is not a regular file of a sensible size counts as not there. */
export async function readProject(repository: RepositoryDescription, own: Own): Promise<Project> {
  const { root, isRepository, hasCommit } = repository;
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
    isRepository,
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

async function readHooks({ root, hooksFolder }: RepositoryDescription): Promise<readonly HookFile[]> {
  const folders = new Set([path.join(root, '.husky'), ...(hooksFolder === null ? [] : [hooksFolder])]);
  const lists = await Promise.all([...folders].map((folder) => readHookFolder(root, folder)));
  return lists.flat();
}

/** husky's own folder `.husky/_` is generated, and holds stubs; what they call lies beside it. */
function isOfHusky(folder: string): boolean {
  return folder.endsWith(path.join('.husky', '_'));
}

const huskyStub = /husky|"\$0"\)\/h"/i;

async function readHookFolder(root: string, folder: string): Promise<readonly HookFile[]> {
  const inside = path.relative(root, folder);
  const isGenerated = isOfHusky(folder);
  const isInside = !inside.startsWith('..') && !path.isAbsolute(inside);
  const tracked = isInside && !isGenerated && !inside.split(path.sep).includes('.git');
  const names = (await listFolder(folder)).map(({ name }) => name).filter((name) => /^[a-z-]+$/.test(name));
  const hooks = await Promise.all(
    names.map(async (name) => {
      const text = await textOf(path.join(folder, name));
      const shown = inside.startsWith('..') ? folder : inside;
      if (text === null || (isGenerated && huskyStub.test(text))) return [];
      return [{ path: path.join(shown, name), text, tracked }];
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
