import { describe, expect, test } from 'vitest';
import { checksOf, type Check, type DoctorFacts, type FolderFacts } from '../../src/cli/doctor-checks.js';
import { textOf } from '../../src/cli/doctor.js';
import { diskOf } from '../../src/platform/mounts.js';
import { temporaryFolder } from '../rig/temp.js';

const cache: FolderFacts = {
  ...{ name: 'cache folder', path: '/home/me/.cache/giro', isWritable: true, fileSystem: 'ext4' },
  ...{ isNoExec: false, freeBytes: 80e9 },
};

const machine: DoctorFacts['machine'] = {
  node: '22.11.0',
  git: { path: '/usr/bin/git', version: '2.45.1' },
  shell: 'bash',
  folders: [cache],
  openFiles: 4096,
  platform: 'linux',
  isRoot: false,
  cgroups: { kind: 'v1', hierarchies: [{ folder: '/x', controllers: ['pids', 'memory'] }] },
  hasEnvironments: true,
  bubblewrap: true,
  userNamespaces: 'allowed',
  nowMs: Date.UTC(2026, 11, 1, 7, 30),
  terminal: { isTerminal: true, board: true, columns: 120, rows: 40, hasColors: true, hasUnicode: true, ci: false },
};

const repository: Extract<DoctorFacts['repository'], { kind: 'open' }> = {
  kind: 'open',
  top: '/home/me/project',
  isShallow: false,
  hasSubmodules: false,
  hasLfs: false,
  isCaseBlind: false,
  hasGiroBranch: false,
  stopFile: null,
  headMs: Date.UTC(2026, 10, 30),
};

const policy: Extract<DoctorFacts['policy'], { kind: 'read' }> = {
  kind: 'read',
  agents: 4,
  gates: 2,
  root: null,
  programs: [{ name: 'driver claude', program: 'claude', isFound: true, isUsed: true }],
};

/** The checks that are not ok. */
function found(facts: {
  readonly machine?: Partial<DoctorFacts['machine']>;
  readonly repository?: Partial<typeof repository> | DoctorFacts['repository'];
  readonly policy?: Partial<typeof policy> | DoctorFacts['policy'];
}): readonly Check[] {
  const all = checksOf({
    machine: { ...machine, ...facts.machine },
    repository: { ...repository, ...facts.repository },
    policy: { ...policy, ...facts.policy },
  });
  return all.filter(({ status }) => status !== 'ok');
}

describe('what is looked at', () => {
  test('is all right on a machine that has everything', () => {
    expect(found({})).toEqual([]);
    expect(textOf(checksOf({ machine, repository, policy }), false)).toBe(`machine
  ok       node             22.11.0
  ok       git              2.45.1 (/usr/bin/git)
  ok       shell for gates  bash
  ok       cache folder     /home/me/.cache/giro (ext4), 80 GB free
  ok       open files       4096 at once
  ok       clock            2026-12-01 07:30 UTC

repository
  ok       checkout         /home/me/project

giro.toml
  ok       file             4 agents and 2 gates at once
  ok       driver claude    claude

processes
  ok       limits           of processes and memory (cgroups of version 1)
  ok       left running     is found by its mark and ended
  ok       sandbox          bubblewrap is installed, user namespaces: allowed; not used yet

terminal
  ok       shows            the board; colors, unicode, 120x40

nothing is a problem
`);
  });

  test.each<[string, Parameters<typeof found>[0], Partial<Check>]>([
    ['an old node', { machine: { node: '20.18.3' } }, { name: 'node', detail: '20.18.3 is too old' }],
    ['no git', { machine: { git: null } }, { name: 'git', fix: 'install git 2.38 or newer' }],
    [
      'an old git',
      { machine: { git: { path: '/g', version: '2.37.9' } } },
      { name: 'git', detail: '2.37.9 (/g) is too old' },
    ],
    ['no bash', { machine: { shell: null } }, { name: 'shell for gates', fix: 'install bash' }],
    [
      'a cache folder of somebody else',
      { machine: { folders: [{ ...cache, isWritable: false }] } },
      { name: 'cache folder', detail: '/home/me/.cache/giro (ext4) cannot be written' },
    ],
    [
      'a full disk',
      { machine: { folders: [{ ...cache, freeBytes: 5e7 }] } },
      { name: 'cache folder', fix: 'free some space: giro clean' },
    ],
    ['very few open files', { machine: { openFiles: 32 } }, { name: 'open files', fix: 'raise it: ulimit -n 1024' }],
    ['a clock that was reset', { machine: { nowMs: 0 } }, { name: 'clock', detail: 'it says 1970-01-01 00:00 UTC' }],
    [
      'a repository that git refuses',
      { repository: { kind: 'refused', message: 'the repository /r belongs to another user', hint: 'trust it' } },
      { name: 'git', fix: 'trust it' },
    ],
    [
      'a bare repository',
      { repository: { top: null } },
      { name: 'checkout', fix: 'run giro in a clone or a worktree' },
    ],
    ['a branch called giro', { repository: { hasGiroBranch: true } }, { name: 'branches' }],
    [
      'a giro.toml with mistakes',
      { policy: { kind: 'wrong', message: 'line 3: unknown key' } },
      { detail: 'line 3: unknown key' },
    ],
    [
      'a gate without its program',
      { policy: { programs: [{ name: 'gate test', program: 'npm', isFound: false, isUsed: true }] } },
      { name: 'gate test', detail: 'npm cannot be started: no such program on PATH' },
    ],
  ])('%s is a problem', (_name, facts, expected) => {
    expect(found(facts)).toEqual([expect.objectContaining({ status: 'problem', ...expected })]);
  });

  test.each<[string, Parameters<typeof found>[0], string]>([
    ['little space', { machine: { folders: [{ ...cache, freeBytes: 1e9 }] } }, '1.0 GB free'],
    ['a network disk', { machine: { folders: [{ ...cache, fileSystem: 'nfs4' }] } }, 'a network file system is slow'],
    ['a disk without programs', { machine: { folders: [{ ...cache, isNoExec: true }] } }, 'noexec'],
    [
      'few open files for many agents',
      { machine: { openFiles: 1024 }, policy: { agents: 64 } },
      '66 agents and gates may need 1184',
    ],
    ['open files that are not told', { machine: { openFiles: null } }, 'not known'],
    [
      'a clock behind the repository',
      { repository: { headMs: Date.UTC(2027, 0, 1) } },
      'HEAD was committed after that',
    ],
    ['no repository', { repository: { kind: 'none' }, policy: { kind: 'none' } }, 'only the machine was looked at'],
    ['a shallow clone', { repository: { isShallow: true } }, 'shallow clone'],
    ['submodules', { repository: { hasSubmodules: true } }, 'are empty for agents and gates'],
    ['LFS', { repository: { hasLfs: true } }, 'stay pointers'],
    ['a disk that takes A for a', { repository: { isCaseBlind: true } }, 'upper and lower case'],
    ['a STOP file', { repository: { stopFile: '/r/.git/giro/STOP' } }, 'keeps giro from starting'],
    ['no giro.toml', { policy: { kind: 'missing' } }, 'there is none yet'],
    [
      'a driver that nobody uses without its program',
      { policy: { programs: [{ name: 'driver x', program: './x', isFound: false, isUsed: false }] } },
      './x cannot be started: it is not there or not executable (no role uses it)',
    ],
    [
      'no cgroups',
      { machine: { cgroups: { kind: 'none', why: 'it is read-only', fix: 'do it' } } },
      'none: it is read-only',
    ],
    [
      'no memory controller',
      { machine: { cgroups: { kind: 'v2', hierarchies: [{ folder: '/x', controllers: ['pids'] }], first: 'move' } } },
      'of the number of processes (cgroups of version 2); memory is not limited',
    ],
    [
      'another system',
      { machine: { platform: 'darwin', hasEnvironments: false } },
      'darwin does not show environments',
    ],
    ['root', { machine: { isRoot: true } }, 'giro runs as root'],
    [
      'a small window',
      { machine: { terminal: { ...machine.terminal, rows: 10 } } },
      'the board; colors, unicode, 120x10',
    ],
  ])('%s is a note', (_name, facts, detail) => {
    expect(found(facts)).toEqual([
      expect.objectContaining({ status: 'note', detail: expect.stringContaining(detail) as string }),
    ]);
  });

  test.each([
    [
      { isTerminal: false, board: false, columns: null, rows: null, hasColors: false },
      'one line per event (no terminal); no colors, unicode',
    ],
    [{ board: false, ci: true }, 'one line per event (CI); colors, unicode, 120x40'],
    [{ hasUnicode: false }, 'the board; colors, ASCII, 120x40'],
  ])('how it is shown is told: %o', (change, detail) => {
    const checks = checksOf({
      machine: { ...machine, terminal: { ...machine.terminal, ...change } },
      repository,
      policy,
    });
    expect(checks.at(-1)).toMatchObject({ name: 'shows', status: 'ok', detail });
  });
});

test('what a fix is stands below, and what is a problem is counted', () => {
  const checks: readonly Check[] = [
    { area: 'machine', name: 'node', status: 'problem', detail: '\u001b[2Jold', fix: 'install it' },
    { area: 'machine', name: 'a', status: 'problem', detail: 'b', fix: null },
  ];
  expect(textOf(checks, false)).toBe(`machine
  problem  node  \\u{1b}[2Jold
                 install it
  problem  a     b

2 problems keep giro from working here
`);
  expect(textOf(checks, true)).toContain('\u001b[31mproblem\u001b[0m');
});

describe('the disk of a folder', () => {
  const mounts = [
    '20 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw',
    '21 20 0:30 / /home rw,noexec,relatime shared:2 master:1 - nfs4 server:/home rw',
    '22 20 0:31 / /homestead rw - btrfs /dev/sdb rw',
  ].join('\n');

  test('is that of the longest mount above, also when it is not there yet', async () => {
    const { path } = await temporaryFolder();
    expect(diskOf(`${path}/not/there`, mounts)).toMatchObject({
      fileSystem: 'ext4',
      isWritable: true,
      isNoExec: false,
    });
    const below = mounts.replaceAll('/home ', `${path} `);
    expect(diskOf(`${path}/not/there`, below)).toMatchObject({ fileSystem: 'nfs4', isNoExec: true });
    expect(diskOf(path, '')).toMatchObject({ fileSystem: '' });
    expect(diskOf(path).freeBytes).toBeGreaterThan(0);
  });
});
