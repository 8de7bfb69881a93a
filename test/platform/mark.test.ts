import { mkdir, rename, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { ownIdentity } from '../../src/platform/identity.js';
import { formatMark, isOwn, isOwnerDead, newMark, parseMark, repositoryMark } from '../../src/platform/mark.js';
import { temporaryFolder } from '../rig/temp.js';

const mark = newMark({ repository: '0123456789abcdef', spec: 'auth', run: '20261130t221405z-1a2b3c' });

test('a mark is read back as it was written, in one word', () => {
  const text = formatMark(mark);
  expect(text).toMatch(/^[\w%.~/-]+$/);
  expect(parseMark(text)).toEqual(mark);
});

test.each([
  '',
  'x',
  'a/b/c/d/e/f/g',
  'a/b/c/1/e/f',
  'a/b/c/1/e/f/g/h',
  'a/b/c/0/e/f/g',
  'a/b/c/-1/e/f/g',
  '%/b/c/1/e/f/g',
])('%j is no mark', (text) => {
  expect(parseMark(text)).toBeNull();
});

test('no two marks are the same', () => {
  expect(formatMark(newMark(mark))).not.toBe(formatMark(mark));
});

describe('the giro that made a mark', () => {
  test('is this one', () => {
    expect([isOwn(mark), isOwnerDead(mark)]).toEqual([true, false]);
  });

  test('is another, and gone, when its number was given to a later process', () => {
    const later = { ...mark, owner: { ...mark.owner, startTime: '1' } };
    expect([isOwn(later), isOwnerDead(later)]).toEqual([false, true]);
  });

  test('is alive', () => {
    const parent = { ...mark, owner: { ...mark.owner, pid: process.ppid } };
    expect(isOwn(parent)).toBe(false);
  });

  test('is not known to be gone when it is in another container', () => {
    const elsewhere = { ...mark, owner: { ...mark.owner, pid: 2 ** 22 + 1, pidNamespace: 'pid:[1]' } };
    expect([isOwn(elsewhere), isOwnerDead(elsewhere)]).toEqual([false, false]);
    expect(ownIdentity().pidNamespace).not.toBe('pid:[1]');
  });
});

test('a repository is the same whichever way one comes, and another one at the same path is not it', async () => {
  const { path } = await temporaryFolder();
  const folder = join(path, 'git');
  await mkdir(folder);
  await symlink(folder, join(path, 'link'));
  const named = repositoryMark(folder);
  expect(repositoryMark(join(path, 'link'))).toBe(named);
  await rename(folder, join(path, 'old'));
  await mkdir(folder);
  expect(repositoryMark(folder)).not.toBe(named);
});
