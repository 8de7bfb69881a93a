import { lstat, mkdir, readdir, readFile, readlink, rm, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { WorktreePolicy } from '../../src/policy.js';
import { findSources } from '../../src/worktree/copies.js';
import { ignorePattern, madeBySetup, type SetupPorts, type SetupRequest } from '../../src/worktree/setup.js';
import { startRun, type FolderRig } from '../rig/folders.js';
import { makeRepository, type TestRepository } from '../rig/repository.js';

interface Bench extends FolderRig {
  readonly repository: TestRepository;
  readonly request: SetupRequest;
  readonly folder: string;
}

/** A folder with the files of a repository, to be set up. */
async function makeBench(
  policy: Partial<WorktreePolicy>,
  more: { readonly files?: Readonly<Record<string, string>>; readonly setup?: Partial<SetupPorts> } = {},
): Promise<Bench> {
  const repository = await makeRepository({ files: more.files ?? { 'a.txt': 'a\n', 'lib/b.txt': 'b\n' } });
  const rig = await startRun(repository, { policy, ...(more.setup === undefined ? {} : { setup: more.setup }) });
  const { tree } = await rig.git.readCommit(await repository.head());
  const folder = join(repository.folder, 'x');
  await mkdir(folder);
  await rig.git.checkOut(folder, join(repository.folder, 'x.index'), tree);
  const stamp = join(repository.folder, 'store', 'setup.json');
  const slot = await rig.slots.take();
  const request = { folder, tree, slot, stamp, name: 'x', pristine: true, isolate: () => Promise.resolve() };
  return { ...rig, repository, request, folder };
}

async function place(root: string, files: Readonly<Record<string, string>>): Promise<void> {
  for (const [path, text] of Object.entries(files)) {
    await mkdir(dirname(join(root, path)), { recursive: true });
    await writeFile(join(root, path), text);
  }
}

describe('the command', () => {
  test('runs in the folder with CI, the slot and its temporary folder, and what it made is told', async () => {
    const setup =
      'echo "$CI $GIRO_SLOT $GIRO_PORT_BASE $TMPDIR $PWD" > seen; mkdir -p lib/gen node_modules/x; echo 1 > lib/gen/x';
    const { request, folder, setup: setUp } = await makeBench({ setup });
    const done = await setUp(request);
    expect(done).toEqual({ ok: true, value: { made: ['lib/gen', 'node_modules', 'seen'], ran: true } });
    expect(await readFile(join(folder, 'seen'), 'utf8')).toBe(`true 1 10020 ${request.slot.temporary} ${folder}\n`);
    expect(await madeBySetup(request.stamp)).toEqual(['lib/gen', 'node_modules', 'seen']);
  });

  test('is not run again while command and inputs stay the same, and what it made is there', async () => {
    const files = { 'a.txt': 'a\n', 'package-lock.json': '1\n' };
    const bench = await makeBench({ setup: 'echo x >> log', inputs: ['**/package-lock.json'] }, { files });
    const { request, folder, git } = bench;
    const runs = async (change: Partial<SetupRequest> = {}): Promise<string> => {
      await bench.setup({ ...request, ...change });
      return readFile(join(folder, 'log'), 'utf8');
    };
    expect(await runs()).toBe('x\n');
    expect(await runs()).toBe('x\n');
    const other = async (path: string): Promise<Partial<SetupRequest>> => {
      const oid = await git.writeBlob('2\n');
      return { tree: await git.editTree(request.tree, new Map([[path, { mode: '100644', oid }]])) };
    };
    expect(await runs(await other('a.txt'))).toBe('x\n');
    expect(await runs(await other('package-lock.json'))).toBe('x\nx\n');
    expect(await runs(await other('package-lock.json'))).toBe('x\nx\n');
    await rm(join(folder, 'log'));
    expect(await runs(await other('package-lock.json'))).toBe('x\n');
  });

  test('that fails is a failure with its exit, the end of its output and the log, and runs again the next time', async () => {
    const bench = await makeBench({ setup: 'mkdir half; echo one; echo two >&2; false | cat' });
    const failure = await bench.setup(bench.request);
    expect(failure).toMatchObject({
      ok: false,
      failure: { kind: 'setup-failed', message: expect.stringMatching(/exit 1$/), tail: 'one\ntwo' },
    });
    if (failure.ok) throw new Error('passed');
    expect(await readFile(failure.failure.log, 'utf8')).toBe('one\ntwo\n');
    expect(await madeBySetup(bench.request.stamp)).toEqual(['half']);
    expect((await bench.setup(bench.request)).ok).toBe(false);
  });

  test('that takes too long is ended', async () => {
    const bench = await makeBench({ setup: 'sleep 60', setupTimeoutMs: 300 });
    const failure = await bench.setup(bench.request);
    expect(failure).toMatchObject({ ok: false, failure: { message: expect.stringContaining('not done within 0 s') } });
  });

  test('cut off by a crash leaves what it made its own, not the agent’s', async () => {
    const bench = await makeBench({ setup: 'echo done > made' });
    await place(bench.folder, { 'agents.txt': 'x', 'half.txt': 'x' });
    await place(dirname(bench.request.stamp), {
      'setup.json': JSON.stringify({ key: '', made: [], before: ['agents.txt'] }),
    });
    const done = await bench.setup({ ...bench.request, pristine: false });
    expect(done).toMatchObject({ value: { made: ['half.txt', 'made'] } });
  });

  test('leaves an agent’s files out of what it made', async () => {
    const bench = await makeBench({ setup: 'echo done > made' });
    await place(bench.folder, { 'agents.txt': 'x' });
    const done = await bench.setup({ ...bench.request, pristine: false });
    expect(done).toMatchObject({ value: { made: ['made'] } });
  });
});

describe('copies', () => {
  test('bring what the patterns name, ignored or not, whole folders too, without git’s own', async () => {
    const bench = await makeBench({ copy: ['.env*', 'certs', '**/local.json', 'missing'] });
    await place(bench.repository.path, {
      '.env': '1',
      '.env.test': '2',
      'certs/a/key.pem': '3',
      'certs/.git/config': 'no',
      'lib/local.json': '4',
      'node_modules/x/local.json': 'no',
      'other.txt': 'no',
    });
    const done = await bench.setup(bench.request);
    expect(done).toEqual({
      ok: true,
      value: { made: ['.env', '.env.test', 'certs', 'lib/local.json'], ran: false },
    });
    expect(await readFile(join(bench.folder, 'certs/a/key.pem'), 'utf8')).toBe('3');
    expect((await readdir(bench.folder)).sort()).toEqual(['.env', '.env.test', 'a.txt', 'certs', 'lib']);
  });

  test('never replace a tracked file', async () => {
    const bench = await makeBench({ copy: ['lib', 'a.txt'] });
    await place(bench.repository.path, { 'lib/b.txt': 'edited\n', 'lib/new.txt': 'new\n', 'a.txt': 'edited\n' });
    expect(await bench.setup(bench.request)).toMatchObject({ value: { made: ['lib/new.txt'] } });
    expect(await readFile(join(bench.folder, 'a.txt'), 'utf8')).toBe('a\n');
    expect(await readFile(join(bench.folder, 'lib/b.txt'), 'utf8')).toBe('b\n');
  });

  test('keep links that stay inside and leave out the others, with a word', async () => {
    const bench = await makeBench({ copy: ['conf'] });
    await place(bench.repository.path, { 'conf/real': 'x' });
    await symlink('real', join(bench.repository.path, 'conf/inside'));
    await symlink('/etc/passwd', join(bench.repository.path, 'conf/outside'));
    await bench.setup(bench.request);
    expect(await readlink(join(bench.folder, 'conf/inside'))).toBe('real');
    expect((await readdir(join(bench.folder, 'conf'))).sort()).toEqual(['inside', 'real']);
    expect(bench.notices).toEqual(['not copied from your checkout: conf/outside: a link that leaves the checkout']);
  });

  test('are not written through a link that leads elsewhere', async () => {
    const bench = await makeBench({ copy: ['deep/er/x'] });
    await place(bench.repository.path, { 'deep/er/x': 'x' });
    await mkdir(join(bench.repository.folder, 'elsewhere'));
    await symlink(join(bench.repository.folder, 'elsewhere'), join(bench.folder, 'deep'));
    await bench.setup(bench.request);
    expect(await readdir(join(bench.repository.folder, 'elsewhere'))).toEqual([]);
    expect(bench.notices).toEqual([expect.stringContaining('a link is in its way')]);
  });

  test('are made again when the source changed', async () => {
    const bench = await makeBench({ copy: ['.env'] });
    await place(bench.repository.path, { '.env': '1' });
    await bench.setup(bench.request);
    await place(bench.repository.path, { '.env': '22' });
    await bench.setup(bench.request);
    expect(await readFile(join(bench.folder, '.env'), 'utf8')).toBe('22');
  });

  test('never leave the checkout, whatever the pattern says', async () => {
    const bench = await makeBench({});
    await place(bench.repository.folder, { 'secret.txt': 'x' });
    expect(await findSources(bench.repository.path, ['../secret.txt', '/etc/passwd', '../*', '.git/config'])).toEqual(
      [],
    );
  });

  test('are none in a bare repository', async () => {
    const bench = await makeBench({ copy: ['.env'], link: ['data'] }, { setup: { userTop: null } });
    expect(await bench.setup(bench.request)).toEqual({ ok: true, value: { made: [], ran: false } });
  });
});

describe('links', () => {
  test('lead into the checkout; one that is there stays', async () => {
    const bench = await makeBench({ link: ['data/', 'lib/cache'] });
    await place(bench.repository.path, { 'data/x': '1', 'lib/cache/y': '2' });
    expect(await bench.setup(bench.request)).toMatchObject({ value: { made: ['data', 'lib/cache'] } });
    expect(await readlink(join(bench.folder, 'data'))).toBe(join(bench.repository.path, 'data'));
    expect(await bench.setup(bench.request)).toMatchObject({ value: { made: ['data', 'lib/cache'] } });
    expect(bench.notices).toEqual([]);
  });

  test('are not made over tracked files, to nothing, out of the checkout, or over something else', async () => {
    const bench = await makeBench({ link: ['a.txt', 'missing', '../outside', 'taken'] });
    await place(bench.repository.path, { taken: '1' });
    await place(bench.folder, { taken: 'mine' });
    expect(await bench.setup(bench.request)).toMatchObject({ value: { made: [] } });
    expect((await lstat(join(bench.folder, 'a.txt'))).isFile()).toBe(true);
    expect(bench.notices).toHaveLength(4);
  });
});

test.each([
  ['a b', '/a b'],
  ['!x/*?[y]\\', '/!x/\\*\\?\\[y]\\\\'],
  ['end ', '/end\\ '],
])('the pattern for %j means only it', (path, pattern) => {
  expect(ignorePattern(path)).toBe(pattern);
});
