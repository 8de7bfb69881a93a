/**
 * The `.git` of a gate checkout: one commit of its own with the tree that is checked out, objects borrowed from the
 * repository, nothing to configure and nothing to find. `git status`, `git ls-files` and `git diff HEAD` work in it.
 */
import { dirname, join } from 'node:path';
import type { Oid } from '../issue.js';
import { writeNew } from '../platform/files.js';
import { makeFolder, removeTree } from '../platform/folders.js';
import { giveIndex } from './admin.js';
import type { Git } from './git-types.js';
import { encodeCommit, looseFile, nameObject } from './objects.js';

/** What to make a repository from. */
export interface ThrowawayRequest {
  readonly folder: string;
  readonly tree: Oid;
  /** An index that has the tree and knows the files of the folder. */
  readonly index: string;
  /** Patterns of what its `status` is not to list. */
  readonly exclude: readonly string[];
}

// The same tree makes the same commit, and build tools accept the year.
const commitTime = Date.UTC(2000, 0, 1);

/** Makes it anew, whatever was there. */
export async function writeThrowawayRepository(
  git: Pick<Git, 'commonDir' | 'hash'>,
  { folder, tree, index, exclude }: ThrowawayRequest,
): Promise<void> {
  const root = join(folder, '.git');
  await removeTree(root);
  const message = 'giro: the tree under judgement';
  const object = encodeCommit({ tree, parents: [], message, at: commitTime });
  const commit = nameObject(git.hash, 'commit', object);
  const files: readonly (readonly [string, string | Uint8Array])[] = [
    [`objects/${commit.slice(0, 2)}/${commit.slice(2)}`, Buffer.concat(await looseFile('commit', object))],
    ['objects/info/alternates', `${join(git.commonDir, 'objects')}\n`],
    ['packed-refs', `${commit} refs/heads/main\n`],
    ['config', configOf(git.hash)],
    ...(exclude.length === 0 ? [] : [['info/exclude', exclude.map((pattern) => `${pattern}\n`).join('')] as const]),
    ['HEAD', 'ref: refs/heads/main\n'],
  ];
  // Without it, it would be no repository.
  await makeFolder(join(root, 'refs'));
  for (const [name, data] of files) {
    await makeFolder(dirname(join(root, name)));
    await writeNew(join(root, name), data);
  }
  await giveIndex(index, root);
}

function configOf(hash: Git['hash']): string {
  const core = [
    '[core]',
    `repositoryFormatVersion = ${hash === 'sha1' ? '0' : '1'}`,
    'bare = false',
    'fileMode = true',
  ];
  return [...core, ...(hash === 'sha1' ? [] : ['[extensions]', `objectFormat = ${hash}`]), ''].join('\n');
}
