import { mkdir, stat, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { makeLink, makePrivateFolder, readLink, realPath, stampOf } from '../../src/platform/links.js';
import { temporaryFolder } from '../rig/temp.js';

test('a link is read as it is written, and is null where there is none', async () => {
  const { path } = await temporaryFolder();
  await makeLink('../nowhere', join(path, 'link'));
  await writeFile(join(path, 'file'), '');
  expect(await readLink(join(path, 'link'))).toBe('../nowhere');
  expect(await readLink(join(path, 'file'))).toBeNull();
  expect(await readLink(join(path, 'missing'))).toBeNull();
  expect(await readLink(join(path, 'file/below'))).toBeNull();
});

test('a link is never made over something', async () => {
  const { path } = await temporaryFolder();
  await writeFile(join(path, 'file'), '');
  await expect(makeLink('x', join(path, 'file'))).rejects.toThrow('EEXIST');
});

test('a real path follows all links, and is null where nothing is', async () => {
  const { path } = await temporaryFolder();
  await mkdir(join(path, 'a'));
  await symlink('a', join(path, 'b'));
  expect(await realPath(join(path, 'b'))).toBe(await realPath(join(path, 'a')));
  expect(await realPath(join(path, 'c'))).toBeNull();
});

test('a stamp is of the link itself, and is null where nothing is', async () => {
  const { path } = await temporaryFolder();
  await writeFile(join(path, 'file'), 'four');
  await symlink('./file', join(path, 'link'));
  expect((await stampOf(join(path, 'file')))?.size).toBe(4);
  expect(await stampOf(join(path, 'link'))).not.toEqual(await stampOf(join(path, 'file')));
  expect(await stampOf(join(path, 'missing'))).toBeNull();
});

test('a private folder is its owner’s alone, whatever the umask, and is never an old one', async () => {
  const { path } = await temporaryFolder();
  await makePrivateFolder(join(path, 'a/b'));
  expect((await stat(join(path, 'a/b'))).mode & 0o777).toBe(0o700);
  await expect(makePrivateFolder(join(path, 'a/b'))).rejects.toThrow('EEXIST');
});
