import { execFileSync } from 'node:child_process';
import { chmod, link, lstat, mkdir, readFile, readdir, readlink, stat, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import {
  kindOf,
  linkExclusive,
  openAppend,
  readIfExists,
  readTail,
  rename,
  sizeOf,
  writeAtomic,
  writeNew,
} from '../../src/platform/files.js';
import { copyTree, listFolder, makeFolder, removeTree, statMany, walkFolders } from '../../src/platform/folders.js';
import { temporaryFolder } from '../rig/temp.js';
import { program } from './program.js';

async function folder(): Promise<string> {
  return (await temporaryFolder()).path;
}

/** A file system with room for almost nothing; null where it cannot be mounted. */
async function fullDisk(): Promise<string | null> {
  const { path } = await temporaryFolder();
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=64k', 'tmpfs', path], { stdio: 'ignore' });
    return path;
  } catch {
    return null;
  }
}

describe('writing atomically', () => {
  test('makes and replaces a file, text or bytes, and leaves nothing else', async () => {
    const path = join(await folder(), 'file');
    await writeAtomic(path, 'ä');
    expect(await readFile(path, 'utf8')).toBe('ä');
    await writeAtomic(path, Uint8Array.of(0, 255), { sync: false });
    expect([...(await readFile(path))]).toEqual([0, 255]);
    await writeAtomic(path, '');
    expect(await sizeOf(path)).toBe(0);
    expect(await readdir(join(path, '..'))).toEqual(['file']);
  });

  test('keeps the permissions of what it replaces, unless told others', async () => {
    const path = join(await folder(), 'file');
    const mode = async (): Promise<number> => (await stat(path)).mode & 0o777;
    await writeAtomic(path, 'a');
    expect(await mode()).toBe(0o644);
    await chmod(path, 0o750);
    await writeAtomic(path, 'b');
    expect(await mode()).toBe(0o750);
    await writeAtomic(path, 'c', { mode: 0o600 });
    expect(await mode()).toBe(0o600);
  });

  test('does not touch another name of the same file', async () => {
    const root = await folder();
    await writeFile(join(root, 'one'), 'old');
    await link(join(root, 'one'), join(root, 'two'));
    await writeAtomic(join(root, 'one'), 'new');
    expect(await readFile(join(root, 'two'), 'utf8')).toBe('old');
  });

  test('refuses links and folders, and writes nothing through them', async () => {
    const root = await folder();
    await writeFile(join(root, 'target'), 'old');
    await symlink('target', join(root, 'link'));
    await symlink('nowhere', join(root, 'dangling'));
    for (const name of ['link', 'dangling', '']) {
      await expect(writeAtomic(join(root, name), 'new')).rejects.toThrow('not a regular file');
    }
    expect(await readFile(join(root, 'target'), 'utf8')).toBe('old');
    expect((await readdir(root)).sort()).toEqual(['dangling', 'link', 'target']);
  });

  test('rejects when the folder is not there', async () => {
    await expect(writeAtomic(join(await folder(), 'no', 'file'), 'x')).rejects.toThrow('ENOENT');
  });

  test('takes a name as long as names can be', async () => {
    const path = join(await folder(), 'x'.repeat(255));
    await writeAtomic(path, 'a');
    expect(await readFile(path, 'utf8')).toBe('a');
  });

  test('on a full disk keeps the old file, removes its own and says so', async () => {
    const disk = await fullDisk();
    if (disk === null) return; // Only root may mount; the rule it shows is the same for all.
    try {
      const path = join(disk, 'file');
      await writeAtomic(path, 'good');
      await expect(writeAtomic(path, 'x'.repeat(100_000))).rejects.toThrow('ENOSPC');
      expect(await readFile(path, 'utf8')).toBe('good');
      expect(await readdir(disk)).toEqual(['file']);
    } finally {
      execFileSync('umount', [disk]);
    }
  });
});

describe('creating exclusively', () => {
  test('only the first creates, whole, and nobody leaves a file behind', async () => {
    const root = await folder();
    const contents = Array.from({ length: 20 }, (_, index) => String(index).repeat(10_000));
    const made = await Promise.all(contents.map((content) => linkExclusive(join(root, 'lock'), content)));
    expect(made.filter(Boolean)).toHaveLength(1);
    expect(await readFile(join(root, 'lock'), 'utf8')).toBe(contents[made.indexOf(true)]);
    expect(await readdir(root)).toEqual(['lock']);
  });
});

describe('reading', () => {
  test('tells absent from unreadable', async () => {
    const root = await folder();
    await writeFile(join(root, 'file'), 'x');
    expect(await readIfExists(join(root, 'no'))).toBeNull();
    expect(await readIfExists(join(root, 'file', 'below'))).toBeNull();
    expect((await readIfExists(join(root, 'file')))?.toString()).toBe('x');
    await expect(readIfExists(root)).rejects.toThrow('EISDIR');
  });

  test('gives what the kernel makes up and what is large', async () => {
    expect((await readIfExists('/proc/self/stat'))?.toString()).toContain(`${String(process.pid)} `);
    const path = join(await folder(), 'large');
    await writeFile(path, 'x'.repeat(1_000_000));
    expect((await readIfExists(path))?.length).toBe(1_000_000);
  });

  test('does not wait for a pipe, but refuses it', async () => {
    const path = join(await folder(), 'pipe');
    execFileSync('mkfifo', [path]);
    await expect(readIfExists(path)).rejects.toThrow('not a regular file');
    await expect(readTail(path, 10)).rejects.toThrow('not a regular file');
  });

  test('a tail starts at a character and is all of a short file', async () => {
    const path = join(await folder(), 'log');
    await writeFile(path, 'aä🎉');
    expect(await readTail(path, 100)).toBe('aä🎉');
    expect(await readTail(path, 7)).toBe('aä🎉');
    expect(await readTail(path, 6)).toBe('ä🎉');
    expect(await readTail(path, 5)).toBe('🎉');
    expect(await readTail(path, 4)).toBe('🎉');
    for (const bytes of [3, 2, 1, 0]) expect(await readTail(path, bytes)).toBe('');
    expect(await readTail(join(path, '..', 'no'), 5)).toBe('');
  });

  test('says what is at a path, links not followed, and how large it is', async () => {
    const root = await folder();
    await writeFile(join(root, 'file'), 'four');
    await symlink('file', join(root, 'link'));
    await mkdir(join(root, 'folder'));
    execFileSync('mkfifo', [join(root, 'pipe')]);
    const kinds = ['file', 'link', 'folder', 'pipe', 'no', 'file/below'].map((name) => kindOf(join(root, name)));
    expect(await Promise.all(kinds)).toEqual(['file', 'link', 'folder', 'other', null, null]);
    expect(await sizeOf(join(root, 'file'))).toBe(4);
    expect(await sizeOf(join(root, 'no'))).toBe(0);
    expect(await listFolder(root)).toEqual([
      { name: 'file', kind: 'file' },
      { name: 'folder', kind: 'folder' },
      { name: 'link', kind: 'link' },
      { name: 'pipe', kind: 'other' },
    ]);
    expect(await listFolder(join(root, 'no'))).toEqual([]);
  });
});

test('a walk meets every name, enters only the folders it is told to, and follows no link', async () => {
  const root = await folder();
  await mkdir(join(root, 'a/b'), { recursive: true });
  await mkdir(join(root, 'not'));
  for (const name of ['file', 'a/file', 'a/b/file', 'not/file']) await writeFile(join(root, name), '');
  await symlink('a', join(root, 'link'));
  const met: string[] = [];
  await walkFolders(root, (path, entries) => {
    met.push(...(entries ?? []).map(({ name }) => join(path, name)));
    return (entries ?? []).filter((entry) => entry.isDirectory() && entry.name !== 'not').map(({ name }) => name);
  });
  expect(met.sort()).toEqual(['a', 'a/b', 'a/b/file', 'a/file', 'file', 'link', 'not']);
  const lost: unknown[] = [];
  await walkFolders(join(root, 'gone'), (_, entries) => (lost.push(entries), []));
  await walkFolders(join(root, 'file'), (_, entries) => (lost.push(entries), []));
  expect(lost).toEqual([[], []]);
});

test('looks at many paths in their order', async () => {
  const root = await folder();
  await writeFile(join(root, 'file'), '');
  await symlink('file', join(root, 'link'));
  const found = await statMany(['file', 'no', 'link', 'file/below'].map((name) => join(root, name)));
  expect(found.map((on) => [on?.isFile(), on?.isSymbolicLink()])).toEqual([
    [true, false],
    [undefined, undefined],
    [false, true],
    [undefined, undefined],
  ]);
});

test('a new file is written once, and never over another or through a link', async () => {
  const root = await folder();
  await writeNew(join(root, 'file'), 'new');
  await symlink('target', join(root, 'link'));
  await expect(writeNew(join(root, 'file'), 'again')).rejects.toThrow('EEXIST');
  await expect(writeNew(join(root, 'link'), 'x')).rejects.toThrow('EEXIST');
  expect(await readFile(join(root, 'file'), 'utf8')).toBe('new');
});

describe('adding lines', () => {
  test('keeps their order and what was there', async () => {
    const path = join(await folder(), 'events');
    await writeFile(path, 'old\n');
    const writer = await openAppend(path);
    for (let index = 0; index < 100; index += 1) writer.line(String(index));
    expect((await readFile(path, 'utf8')).split('\n')).toHaveLength(102);
    await writer.close();
    expect((await readFile(path, 'utf8')).startsWith('old\n0\n1\n2\n')).toBe(true);
  });

  test('refuses a line end, which would make two lines of one', async () => {
    const writer = await openAppend(join(await folder(), 'events'));
    expect(() => {
      writer.line('a\nb');
    }).toThrow('line end');
    await writer.close();
  });

  test('a full disk does not stop the caller; close tells, and a torn line does not spoil the next', async () => {
    const disk = await fullDisk();
    if (disk === null) return;
    try {
      const writer = await openAppend(join(disk, 'events'));
      await writeFile(join(disk, 'ballast'), 'x'.repeat(20_000));
      writer.line('y'.repeat(100_000));
      await removeTree(join(disk, 'ballast'));
      writer.line('whole');
      await expect(writer.close()).rejects.toThrow('ENOSPC');
      const lines = (await readFile(join(disk, 'events'), 'utf8')).split('\n');
      expect(lines.slice(1)).toEqual(['whole', '']);
    } finally {
      execFileSync('umount', [disk]);
    }
  });
});

describe('folders', () => {
  test('are made with those above, by several at once', async () => {
    const path = join(await folder(), 'a', 'b', 'c');
    await Promise.all(Array.from({ length: 10 }, () => makeFolder(path)));
    expect(await kindOf(path)).toBe('folder');
    await makeFolder(path);
  });

  test('cannot be made in place or below of a file, nor below /proc, and that is said', async () => {
    const path = join(await folder(), 'file');
    await writeFile(path, '');
    await expect(makeFolder(path)).rejects.toThrow('EEXIST');
    await expect(makeFolder(join(path, 'below'))).rejects.toThrow('ENOTDIR');
    await expect(makeFolder('/proc/no/such')).rejects.toThrow('ENOENT');
  });

  test('a link to a folder is as good as one', async () => {
    const root = await folder();
    await mkdir(join(root, 'real'));
    await symlink('real', join(root, 'link'));
    await makeFolder(join(root, 'link'));
    await makeFolder(join(root, 'link', 'below'));
    expect(await kindOf(join(root, 'real', 'below'))).toBe('folder');
  });

  test('are removed without following links', async () => {
    const root = await folder();
    await mkdir(join(root, 'keep'));
    await writeFile(join(root, 'keep', 'file'), '');
    await mkdir(join(root, 'gone'));
    await symlink('../keep', join(root, 'gone', 'link'));
    await removeTree(join(root, 'gone'));
    await removeTree(join(root, 'gone'));
    await symlink('keep', join(root, 'link'));
    await removeTree(join(root, 'link'));
    expect(await readdir(root)).toEqual(['keep']);
    expect(await readdir(join(root, 'keep'))).toEqual(['file']);
  });

  test('are removed also when they are large, several at once, still without following links', async () => {
    const root = await folder();
    await mkdir(join(root, 'keep'));
    await writeFile(join(root, 'keep', 'file'), '');
    const names = ['-rf', 'b c', 'd'];
    for (const name of names) {
      for (let count = 0; count < 100; count++) {
        await mkdir(join(root, name, String(count)), { recursive: true });
        await writeFile(join(root, name, String(count), 'file'), '');
      }
      await symlink('../keep', join(root, name, 'link'));
    }
    await Promise.all([...names, 'd', 'none'].map((name) => removeTree(join(root, name))));
    expect(await readdir(root)).toEqual(['keep']);
    expect(await readdir(join(root, 'keep'))).toEqual(['file']);
  });

  test('are removed though they are read-only, as package caches are', async () => {
    const { folder: place, run } = await program(`
import { mkdirSync, writeFileSync, chmodSync } from 'node:fs';
import { removeTree } from './platform/folders.js';
if (process.getuid() === 0) { process.setgid(65534); process.setuid(65534); }
mkdirSync('open/cache/deep', { recursive: true });
writeFileSync('open/cache/deep/file', '');
chmodSync('open/cache/deep/file', 0o444);
chmodSync('open/cache/deep', 0o555);
chmodSync('open/cache', 0o555);
await removeTree('open/cache');
`);
    await chmod(place, 0o755);
    await mkdir(join(place, 'open'));
    await chmod(join(place, 'open'), 0o777);
    expect(await run()).toEqual({ code: 0, stdout: '', stderr: '' });
    expect(await readdir(join(place, 'open'))).toEqual([]);
  });

  test('are renamed', async () => {
    const root = await folder();
    await mkdir(join(root, 'one'));
    await rename(join(root, 'one'), join(root, 'two'));
    expect(await readdir(root)).toEqual(['two']);
  });

  test('are copied with links as links, modes kept, and pipes left out', async () => {
    const root = await folder();
    const from = join(root, 'from');
    await mkdir(join(from, 'sub', 'deep'), { recursive: true });
    for (let index = 0; index < 20; index += 1) await writeFile(join(from, 'sub', String(index)), String(index));
    await writeFile(join(from, 'run'), '#!/bin/sh\n');
    await chmod(join(from, 'run'), 0o755);
    await symlink('../elsewhere', join(from, 'sub', 'link'));
    execFileSync('mkfifo', [join(from, 'pipe')]);
    await chmod(join(from, 'sub'), 0o555);
    await copyTree(from, join(root, 'to'));
    await chmod(join(from, 'sub'), 0o755);
    expect((await readdir(join(root, 'to'))).sort()).toEqual(['run', 'sub']);
    expect(await readdir(join(root, 'to', 'sub'))).toHaveLength(22);
    expect(await readlink(join(root, 'to', 'sub', 'link'))).toBe('../elsewhere');
    expect(await readFile(join(root, 'to', 'sub', '7'), 'utf8')).toBe('7');
    expect((await lstat(join(root, 'to', 'run'))).mode & 0o777).toBe(0o755);
    expect((await lstat(join(root, 'to', 'sub'))).mode & 0o777).toBe(0o555);
  });

  test('a single file and a single link can be copied too', async () => {
    const root = await folder();
    await writeFile(join(root, 'file'), 'x');
    await symlink('file', join(root, 'link'));
    await copyTree(join(root, 'file'), join(root, 'file2'));
    await copyTree(join(root, 'link'), join(root, 'link2'));
    expect(await readFile(join(root, 'file2'), 'utf8')).toBe('x');
    expect(await readlink(join(root, 'link2'))).toBe('file');
  });
});
