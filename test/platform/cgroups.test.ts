import { chmod, mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { callGroupName, membershipOf, parseRunGroupName, runGroupName } from '../../src/platform/cgroup-name.js';
import { findCgroups } from '../../src/platform/cgroups.js';
import { formatMark, newMark } from '../../src/platform/mark.js';
import { temporaryFolder } from '../rig/temp.js';

/** A machine as it is seen in `/proc` and `/sys`: files by path. */
async function machine(files: Readonly<Record<string, string>>): Promise<string> {
  const { path: root } = await temporaryFolder();
  for (const [path, text] of Object.entries(files)) {
    await mkdir(dirname(join(root, path)), { recursive: true });
    await writeFile(join(root, path), text);
  }
  return root;
}

const unified = '30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n';
const me = String(process.pid);

/** The files of a cgroup of version 2 below `/sys/fs/cgroup`. */
function group(path: string, files: Readonly<Record<string, string>> = {}): Readonly<Record<string, string>> {
  const all = {
    'cgroup.controllers': 'cpu memory pids\n',
    'cgroup.subtree_control': '',
    'cgroup.procs': '',
    'cgroup.type': 'domain\n',
    'memory.max': 'max\n',
    'cpu.max': 'max 100000\n',
    ...files,
  };
  return Object.fromEntries(Object.entries(all).map(([name, text]) => [`/sys/fs/cgroup${path}/${name}`, text]));
}

function seen(path: string, mounts = unified): Readonly<Record<string, string>> {
  return { '/proc/self/mountinfo': mounts, '/proc/self/cgroup': `0::${path}\n` };
}

const terminal = '/user.slice/user-1000.slice/user@1000.service/app.slice/terminal.scope';
const app = dirname(terminal);

describe('version 2', () => {
  test('alone in its own cgroup, as in a scope that systemd delegates: in there, after going into one of its own', async () => {
    const root = await machine({
      ...seen('/a.scope'),
      ...group(''),
      ...group('/a.scope', { 'cgroup.procs': `${me}\n` }),
    });
    expect(findCgroups(root, 'linux')).toEqual({
      kind: 'v2',
      hierarchies: [{ folder: `${root}/sys/fs/cgroup/a.scope`, controllers: ['pids', 'memory'] }],
      first: 'move',
    });
  });

  test('with its own children alone too', async () => {
    const child = { '/proc/77/stat': `77 (a) b) S ${me} 77 77 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 123 0\n` };
    const files = { ...seen('/a.scope'), ...child, ...group('/a.scope', { 'cgroup.procs': `${me}\n77\n` }) };
    expect(findCgroups(await machine(files), 'linux')).toMatchObject({ kind: 'v2', first: 'move' });
  });

  test('with a shell in it, as in a terminal of a desktop: beside it, where the controllers are handed down', async () => {
    const root = await machine({
      ...seen(terminal),
      ...group(app, { 'cgroup.subtree_control': 'memory pids\n' }),
      ...group(terminal, { 'cgroup.procs': `1\n${me}\n` }),
    });
    expect(findCgroups(root, 'linux')).toEqual({
      kind: 'v2',
      hierarchies: [{ folder: `${root}/sys/fs/cgroup${app}`, controllers: ['pids', 'memory'] }],
      first: 'nothing',
    });
  });

  test.each(['memory.max', 'memory.high', 'cpu.max', 'cpuset.cpus'])(
    'never beside its own cgroup when that would be free of a limit of it: %s',
    async (name) => {
      const root = await machine({
        ...seen(terminal),
        ...group(app, { 'cgroup.subtree_control': 'memory pids\n' }),
        ...group(terminal, { 'cgroup.procs': `1\n${me}\n`, [name]: '1000000 100000\n' }),
      });
      expect(findCgroups(root, 'linux')).toMatchObject({ kind: 'none', why: expect.stringContaining(name) as string });
    },
  );

  test('beside its own cgroup with no more processes than that may have', async () => {
    const root = await machine({
      ...seen(terminal),
      ...group(app, { 'cgroup.subtree_control': 'memory pids\n' }),
      ...group(terminal, { 'cgroup.procs': `1\n${me}\n`, 'pids.max': '4915\n' }),
    });
    expect(findCgroups(root, 'linux')).toMatchObject({ kind: 'v2', processes: 4915 });
  });

  test('never beside the cgroup of an agent that started it: the limits of that one hold', async () => {
    const run = `/${runGroupName(newMark({ repository: 'r', spec: 's', run: 'outer' }))}`;
    const root = await machine({
      ...seen(`${run}/1`),
      ...group(run, { 'cgroup.subtree_control': 'memory pids\n' }),
      ...group(`${run}/1`, { 'cgroup.procs': `1\n${me}\n` }),
    });
    expect(findCgroups(root, 'linux')).toMatchObject({
      kind: 'none',
      why: expect.stringContaining('another giro') as string,
    });
  });

  test('at the very root, as in a small virtual machine: there, once the controllers are handed down', async () => {
    const root = await machine({ ...seen('/'), ...group('', { 'cgroup.procs': `1\n${me}\n`, 'cgroup.type': '' }) });
    expect(findCgroups(root, 'linux')).toMatchObject({ kind: 'v2', first: 'hand-down' });
    await writeFile(`${root}/sys/fs/cgroup/cgroup.subtree_control`, 'memory pids\n');
    expect(findCgroups(root, 'linux')).toMatchObject({ kind: 'v2', first: 'nothing' });
  });

  test('at the root of a container that others are in too: nothing, and no foreign process is moved', async () => {
    const root = await machine({ ...seen('/'), ...group('', { 'cgroup.procs': `1\n${me}\n` }) });
    expect(findCgroups(root, 'linux')).toMatchObject({
      kind: 'none',
      why: expect.stringContaining('container') as string,
    });
  });

  test('without the memory controller: the number of processes alone is limited', async () => {
    const files = group('/a.scope', { 'cgroup.procs': `${me}\n`, 'cgroup.controllers': 'cpu pids\n' });
    expect(findCgroups(await machine({ ...seen('/a.scope'), ...files }), 'linux')).toMatchObject({
      hierarchies: [{ controllers: ['pids'] }],
    });
  });

  test('without the pids controller: nothing, with the way to get it', async () => {
    const files = group('/a.scope', { 'cgroup.procs': `${me}\n`, 'cgroup.controllers': 'cpu\n' });
    expect(findCgroups(await machine({ ...seen('/a.scope'), ...files }), 'linux')).toMatchObject({
      kind: 'none',
      fix: expect.stringContaining('systemd-run --user --scope -p Delegate=yes') as string,
    });
  });

  test('a mount that shows a part of the tree', async () => {
    const mounts = '30 23 0:26 /box /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n';
    const root = await machine({ ...seen('/box/inner', mounts), ...group('/inner', { 'cgroup.procs': `${me}\n` }) });
    expect(findCgroups(root, 'linux')).toMatchObject({ hierarchies: [{ folder: `${root}/sys/fs/cgroup/inner` }] });
    await writeFile(`${root}/proc/self/cgroup`, '0::/boxes\n');
    expect(findCgroups(root, 'linux').kind).toBe('none');
  });
});

describe('version 1', () => {
  const mounts = [
    '32 31 0:29 / /sys/fs/cgroup/pids rw,relatime - cgroup cgroup rw,pids',
    '33 31 0:30 / /sys/fs/cgroup/mem\\040ory rw,relatime - cgroup cgroup rw,memory',
    '34 31 0:31 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n',
  ].join('\n');
  const files = {
    '/proc/self/mountinfo': mounts,
    '/proc/self/cgroup': '9:name=systemd:/\n8:pids:/\n4:memory:/box\n0::/\n',
    '/sys/fs/cgroup/pids/cgroup.procs': '',
    '/sys/fs/cgroup/mem ory/box/cgroup.procs': '',
    '/sys/fs/cgroup/mem ory/box/memory.use_hierarchy': '1\n',
    '/sys/fs/cgroup/unified/cgroup.controllers': '\n',
  };

  test('below its own cgroup of each controller', async () => {
    const root = await machine(files);
    expect(findCgroups(root, 'linux')).toEqual({
      kind: 'v1',
      hierarchies: [
        { folder: `${root}/sys/fs/cgroup/pids`, controllers: ['pids'] },
        { folder: `${root}/sys/fs/cgroup/mem ory/box`, controllers: ['memory'] },
      ],
    });
  });

  test('no memory where a group would be free of the limit above it', async () => {
    const root = await machine({ ...files, '/sys/fs/cgroup/mem ory/box/memory.use_hierarchy': '0\n' });
    expect(findCgroups(root, 'linux')).toMatchObject({ hierarchies: [{ controllers: ['pids'] }] });
  });

  test('nothing where its own are not there', async () => {
    const root = await machine({ ...files, '/proc/self/cgroup': '4:memory:/box\n' });
    expect(findCgroups(root, 'linux').kind).toBe('none');
  });

  test.skipIf(process.getuid?.() === 0)('nothing where they may not be written', async () => {
    const root = await machine(files);
    await chmod(`${root}/sys/fs/cgroup/pids/cgroup.procs`, 0o444);
    expect(findCgroups(root, 'linux')).toMatchObject({ kind: 'none' });
  });
});

test('elsewhere there are none', async () => {
  expect(findCgroups(await machine({}), 'linux')).toMatchObject({ kind: 'none' });
  expect(findCgroups('', 'darwin')).toMatchObject({ kind: 'none', why: 'only Linux has cgroups' });
});

describe('the names of cgroups', () => {
  const mark = newMark({ repository: '0123456789abcdef', spec: 'a'.repeat(100), run: '20261130t221405z-1a2b3c' });
  const told = { GIRO_ROLE: 'worker', GIRO_ISSUE: '01-a', GIRO_ATTEMPT: '2' };

  test('say whose they are, and are short enough for a file system', () => {
    const name = runGroupName(mark);
    expect(parseRunGroupName(name)).toEqual(mark);
    expect(name.length).toBeLessThan(256);
    expect(name).not.toContain('/');
    expect(parseRunGroupName('giro-self')).toBeNull();
    expect(parseRunGroupName('giro,x')).toBeNull();
  });

  test('say what is in them, and nothing else of its environment', () => {
    const call = callGroupName(3, { ...told, SECRET: 'x' });
    expect(call).toBe('3,GIRO_ROLE=worker,GIRO_ISSUE=01-a,GIRO_ATTEMPT=2');
    const text = `8:pids:/box/${runGroupName(mark)}/${call}/deeper\n4:memory:/${runGroupName(mark)}/${call}\n0::/\n`;
    expect(membershipOf(text)).toEqual([{ mark, given: { GIRO_RUN: formatMark(mark), ...told } }]);
  });

  test('of a giro in an agent of another both count', () => {
    const inner = newMark({ repository: 'r', spec: 's', run: 'inner' });
    const text = `0::/${runGroupName(mark)}/1/${runGroupName(inner)}/2,GIRO_GATE=test\n`;
    expect(membershipOf(text).map((one) => one.mark.nonce)).toEqual([mark.nonce, inner.nonce]);
    expect(membershipOf(text)[1]?.given['GIRO_GATE']).toBe('test');
  });

  test.each(['0::/\n', '', '0::/user.slice/giro.scope\n', '0::/giro,a,b/1\n'])('%j is none of giro', (text) => {
    expect(membershipOf(text)).toEqual([]);
  });
});

test('handing down and going in are written to a cgroup of version 2 as the kernel wants it', async () => {
  const { openConfinement } = await import('../../src/platform/confinement.js');
  const root = await machine({ ...seen('/a.scope'), ...group('/a.scope', { 'cgroup.procs': `${me}\n` }) });
  const here = findCgroups(root, 'linux');
  const mark = newMark({ repository: 'r', spec: 's', run: 'fake' });
  // No kernel makes the files of a new folder here, so nothing can go in, and giro goes on without.
  expect(openConfinement(mark, { processes: 20, memoryBytes: null }, () => here).open({})).toBeNull();
  expect(await readFile(`${root}/sys/fs/cgroup/a.scope/cgroup.subtree_control`, 'utf8')).toMatch(/[+-]pids [+-]memory/);
});
