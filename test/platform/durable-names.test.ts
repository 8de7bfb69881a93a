import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { ObjectNames } from '../../src/platform/durable-names.js';
import { temporaryFolder } from '../rig/temp.js';

test('who comes while the names of objects are being synced goes on only when they are durable', async () => {
  const { path } = await temporaryFolder();
  await mkdir(join(path, '3f'));
  const names = new ObjectNames(path);
  names.touched(join(path, '3f'));
  const order: string[] = [];
  const first = names.settle().then(() => order.push('first'));
  const second = names.settle().then(() => order.push('second'));
  await Promise.all([first, second]);
  expect(order).toEqual(['first', 'second']);
});

test('names that could not be synced are tried again', async () => {
  const { path } = await temporaryFolder();
  const names = new ObjectNames(path);
  await names.settle();
  const impossible = join(path, 'x'.repeat(300));
  names.touched(impossible);
  await expect(names.settle()).rejects.toThrow('ENAMETOOLONG');
  await expect(names.settle()).rejects.toThrow('ENAMETOOLONG');
});
