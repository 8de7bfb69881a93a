import { mkdir, open, readdir, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { createSlots, portBase, slotOffset } from '../../src/worktree/slots.js';
import { temporaryFolder } from '../rig/temp.js';

test('a slot has the smallest free number from 1, and its ports and folder follow from it', async () => {
  const temporary = join((await temporaryFolder()).path, 't');
  const slots = createSlots({ temporary, offset: 7 });
  const [one, two, three] = [await slots.take(), await slots.take(), await slots.take()];
  expect([one, two, three].map(({ number }) => number)).toEqual([1, 2, 3]);
  expect([one, two, three].map(({ portBase: port }) => port)).toEqual([10_160, 10_180, 10_200]);
  expect(two.temporary).toBe(join(temporary, 'slot-2'));
  slots.free(two);
  expect((await slots.take()).number).toBe(2);
  expect((await slots.take()).number).toBe(4);
});

test('a wish for a number is met when it is free, and an exception is passed over', async () => {
  const slots = createSlots({ temporary: join((await temporaryFolder()).path, 't'), offset: 0 });
  expect((await slots.take({ prefer: 5 })).number).toBe(5);
  expect((await slots.take({ prefer: 5, except: new Set([1]) })).number).toBe(2);
  expect((await slots.take({ prefer: 0 })).number).toBe(1);
});

test('slots taken at the same time never share a number', async () => {
  const slots = createSlots({ temporary: join((await temporaryFolder()).path, 't'), offset: 0 });
  const taken = await Promise.all(Array.from({ length: 20 }, () => slots.take()));
  expect(new Set(taken.map(({ number }) => number)).size).toBe(20);
});

test('the temporary folder is the user’s alone, and empty at each use', async () => {
  const slots = createSlots({ temporary: join((await temporaryFolder()).path, 't'), offset: 0 });
  const slot = await slots.take();
  expect((await stat(slot.temporary)).mode & 0o777).toBe(0o700);
  await mkdir(join(slot.temporary, 'x'));
  await slots.renew(slot);
  expect(await readdir(slot.temporary)).toEqual([]);
  await writeFile(join(slot.temporary, 'y'), '');
  slots.free(slot);
  expect((await slots.take()).number).toBe(1);
  expect(await readdir(slot.temporary)).toEqual([]);
});

test('a file that is still open does not keep the next use from an empty folder', async () => {
  const slots = createSlots({ temporary: join((await temporaryFolder()).path, 't'), offset: 0 });
  const slot = await slots.take();
  const file = await open(join(slot.temporary, 'log'), 'w');
  await slots.renew(slot);
  await file.write('late');
  await file.close();
  expect(await readdir(slot.temporary)).toEqual([]);
});

test('closing removes every temporary folder', async () => {
  const { path } = await temporaryFolder();
  const slots = createSlots({ temporary: join(path, 't'), offset: 0 });
  await slots.take();
  await slots.renew(await slots.take());
  await slots.close();
  expect(await readdir(path)).toEqual([]);
});

test('ports lie below the range for outgoing connections, and differ for every slot of a run', () => {
  const bases = Array.from({ length: 1_100 }, (_, number) => portBase(1_099, number + 1));
  expect(Math.min(...bases)).toBe(10_000);
  expect(Math.max(...bases) + 19).toBe(31_999);
  expect(new Set(bases).size).toBe(1_100);
});

test('runs of other repositories and Specs count from elsewhere', () => {
  const offsets = ['a', 'b', 'c'].flatMap((spec) => [slotOffset('/x', spec), slotOffset('/y', spec)]);
  expect(new Set(offsets).size).toBe(6);
  expect(slotOffset('/x', 'a')).toBe(offsets[0]);
});
