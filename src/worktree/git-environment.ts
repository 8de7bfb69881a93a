/**
 * What every git of giro sees: an environment built from nothing, options that silence what the repository's config could
 * start, and the few files of the private git dir, which needs no such options because it has a config of its own.
 */
import { isAbsolute, join } from 'node:path';
import { identity } from './objects.js';
import type { HashName } from './git-types.js';

/** `merge-tree --write-tree` came with it. */
export const oldestVersion = '2.38';

const fixedPath = ['/usr/bin', '/bin', '/usr/local/bin', '/opt/homebrew/bin'];

/** Where git is looked for, in order: a fixed path, then giro's own, but never in the repository, where anybody may have put one. */
export function gitCandidates(path: string, isForeign: (folder: string) => boolean): readonly string[] {
  const others = path.split(':').filter((folder) => isAbsolute(folder) && isForeign(folder));
  return [...fixedPath, ...others].map((folder) => join(folder, 'git'));
}

/** The version in what `git version` says; `0` when there is none. */
export function parseVersion(text: string): string {
  return /(\d+\.\d+(?:\.\d+)?)/.exec(text)?.[1] ?? '0';
}

/** Whether a version has all that giro uses. */
export function isNewEnough(version: string): boolean {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  const [wantedMajor = 0, wantedMinor = 0] = oldestVersion.split('.').map(Number);
  return major > wantedMajor || (major === wantedMajor && minor >= wantedMinor);
}

/** The environment of every git call; nothing of giro's own environment is in it. */
export function hardEnvironment(binaryFolder: string): Readonly<Record<string, string>> {
  const folders = ['/usr/bin', '/bin', '/usr/local/bin'];
  return {
    PATH: [...new Set([binaryFolder, ...folders])].join(':'),
    // Git must not find a config, an attributes or an ignore file there.
    HOME: '/nonexistent',
    LC_ALL: 'C.UTF-8',
    GIT_CONFIG_NOSYSTEM: '1',
    GIT_CONFIG_GLOBAL: '/dev/null',
    GIT_ATTR_NOSYSTEM: '1',
    GIT_ALLOW_PROTOCOL: 'none',
    GIT_TERMINAL_PROMPT: '0',
    GIT_NO_REPLACE_OBJECTS: '1',
    GIT_GRAFT_FILE: '/dev/null',
    GIT_OPTIONAL_LOCKS: '0',
    GIT_LITERAL_PATHSPECS: '1',
    GIT_NO_LAZY_FETCH: '1',
    GIT_EDITOR: ':',
    GIT_SEQUENCE_EDITOR: ':',
    GIT_PAGER: 'cat',
    GIT_ASKPASS: '/bin/false',
    GIT_SSH_COMMAND: '/bin/false',
    GIT_AUTHOR_NAME: identity.name,
    GIT_AUTHOR_EMAIL: identity.email,
    GIT_COMMITTER_NAME: identity.name,
    GIT_COMMITTER_EMAIL: identity.email,
  };
}

/** The same with the person's own git config in sight, for the calls that ask what it says and run nothing it names. */
export function personEnvironment(
  hard: Readonly<Record<string, string>>,
  own: Readonly<Record<string, string | undefined>>,
): Readonly<Record<string, string>> {
  const hidden = new Set(['GIT_CONFIG_NOSYSTEM', 'GIT_CONFIG_GLOBAL']);
  const shown = { ...hard, HOME: own['HOME'], XDG_CONFIG_HOME: own['XDG_CONFIG_HOME'] };
  const entries = Object.entries(shown).filter(
    (entry): entry is [string, string] => entry[1] !== undefined && !hidden.has(entry[0]),
  );
  return Object.fromEntries(entries);
}

/** Options for the few calls that must read the repository's own config. */
export const silencingOptions: readonly string[] = [
  'core.hooksPath=/dev/null',
  'core.fsmonitor=false',
  'core.untrackedCache=false',
  'core.attributesFile=/dev/null',
  'core.alternateRefsCommand=:',
  'core.pager=cat',
  'core.editor=:',
  'core.fileMode=true',
  'core.fsync=committed,reference',
  // Waits out another git that holds the lock of a ref for a moment.
  'core.filesRefLockTimeout=1000',
  'core.packedRefsTimeout=5000',
  'commit.gpgSign=false',
  'advice.graftFileDeprecated=false',
  'log.showSignature=false',
  'merge.default=text',
  'diff.external=',
  'diff.ignoreSubmodules=all',
  'submodule.recurse=false',
  'gc.auto=0',
  'maintenance.auto=false',
  'safe.bareRepository=explicit',
  // Newer versions of git would add an extension to the repository's config for it.
  'worktree.useRelativePaths=false',
].flatMap((setting) => ['-c', setting]);

/** What the repository and the person say that giro takes over as data. */
export interface UserSettings {
  /** `core.sharedRepository`, so that objects stay usable for a group. */
  readonly shared: string | null;
  /** How files behave in the person's checkout: lower-case keys of `checkoutKeys` with plain values. */
  readonly checkout: ReadonlyMap<string, string>;
  /** Content of the person's ignore file and of `info/exclude`, in that order: the later wins. */
  readonly excludes: string;
}

/** Settings of the person's checkout that only say how its files are to be read. */
export const checkoutKeys: readonly string[] = [
  'core.filemode',
  'core.symlinks',
  'core.ignorecase',
  'core.precomposeunicode',
  'core.autocrlf',
  'core.eol',
];

/**
 * The whole config of a private git dir.
 *
 * Attributes of the tree itself (`text`, `eol`, `ident`, `working-tree-encoding`) stay in force: they are data of the
 * commit, git applies them without running anything, and every checkout by anybody gets the same bytes. So a gate sees
 * what a fresh clone would have, and what an agent writes is normalised as the person's own `git add` would. Filters
 * (LFS and the like) are not defined here and so pass content through: pointer files stay pointers. The person's
 * autocrlf and attributes files do not count: the result must not depend on who runs giro.
 */
export function privateConfig(hash: HashName, settings: UserSettings | null): string {
  // Names fold together on the usual file system there, and git has found out how.
  const onDarwin = (key: string): string =>
    process.platform === 'darwin' ? (settings?.checkout.get(key) ?? 'false') : 'false';
  const lines = [
    '[core]',
    `repositoryFormatVersion = ${hash === 'sha1' ? '0' : '1'}`,
    // No call can mistake its current folder for a work tree; those with one name it.
    'bare = true',
    'fileMode = true',
    'symlinks = true',
    `ignoreCase = ${onDarwin('core.ignorecase')}`,
    `precomposeUnicode = ${onDarwin('core.precomposeunicode')}`,
    'autocrlf = false',
    'safecrlf = false',
    'eol = lf',
    'attributesFile = /dev/null',
    'hooksPath = /dev/null',
    'fsmonitor = false',
    'untrackedCache = false',
    'checkStat = default',
    'trustctime = true',
    'preloadIndex = true',
    'splitIndex = false',
    'logAllRefUpdates = false',
    'quotePath = false',
    'protectHFS = true',
    'protectNTFS = true',
    'fsync = committed',
    'fsyncMethod = batch',
    ...(settings?.shared ? [`sharedRepository = ${settings.shared}`] : []),
    ...(hash === 'sha1' ? [] : ['[extensions]', `objectFormat = ${hash}`]),
    '[index]',
    'version = 4',
    '[gc]',
    'auto = 0',
    '[maintenance]',
    'auto = false',
    '[merge]',
    'renames = true',
    'directoryRenames = conflict',
    '[submodule]',
    'recurse = false',
    '[advice]',
    'addEmbeddedRepo = false',
    'graftFileDeprecated = false',
    '[feature]',
    'manyFiles = false',
  ];
  return `${lines.join('\n')}\n`;
}

/** What the config of a mirror of the person's checkout adds: their files are read as their own git reads them. */
export function mirrorConfig(settings: UserSettings): string {
  const lines = [...settings.checkout].map(([key, value]) => `${key.replace('core.', '')} = ${value}\n`);
  return `[core]\n${lines.join('')}`;
}
