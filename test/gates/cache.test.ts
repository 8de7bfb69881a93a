import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { createVerdictCache, type PassRecord } from '../../src/gates/cache.js';
import { passKey } from '../mutations/parts.js';
import { temporaryFolder } from '../rig/temp.js';
import { gate, tree } from './bench.js';

const record: PassRecord = {
  gate: 'test',
  codeTree: tree('a'),
  at: '2030-01-01T00:00:00.000Z',
  durationMs: 12,
  evidence: null,
};
const subject = {
  codeTree: tree('a'),
  gate: gate('test', 'npm test', { env: ['B', 'A'] }),
  toolFingerprint: 'node 20',
};
const key = passKey(subject);

test('a key changes with the tree, the command, the name, the variables and the tools, and with nothing else', () => {
  const { gate: definition } = subject;
  const others = [
    { ...subject, codeTree: tree('b') },
    { ...subject, toolFingerprint: 'node 22' },
    { ...subject, gate: { ...definition, run: 'npm  test' } },
    { ...subject, gate: { ...definition, name: 'tests' } },
    { ...subject, gate: { ...definition, env: ['A'] } },
  ].map(passKey);
  expect(new Set([key, ...others]).size).toBe(6);
  const same = { ...definition, timeoutMs: 1, on: ['spec' as const], env: ['A', 'B'] };
  expect(passKey({ ...subject, gate: same })).toBe(key);
});

test('a pass is remembered in this process, and by a file in the next', async () => {
  const { path } = await temporaryFolder();
  const folder = join(path, 'giro', 'verdicts');
  const cache = createVerdictCache(folder);
  expect(await cache.get(key)).toBeNull();
  await cache.put(key, record);
  expect(await cache.get(key)).toEqual(record);
  expect(await readdir(folder)).toEqual([`${key}.json`]);
  expect(await createVerdictCache(folder).get(key)).toEqual(record);
  expect(await createVerdictCache(null).get(key)).toBeNull();
});

test('what is not exactly such a file is no pass', async () => {
  const { path: folder } = await temporaryFolder();
  const file = join(folder, `${key}.json`);
  await createVerdictCache(folder).put(key, record);
  const good = JSON.parse(await readFile(file, 'utf8')) as Record<string, unknown>;
  for (const bad of [
    '',
    '{',
    'null',
    '[]',
    JSON.stringify({ ...good, verdict: 'fail' }),
    JSON.stringify({ ...good, key: passKey({ ...subject, codeTree: tree('b') }) }),
    JSON.stringify({ ...good, v: 1 }),
    JSON.stringify({ ...good, more: 1 }),
    JSON.stringify({ ...good, durationMs: '12' }),
  ]) {
    await writeFile(file, bad);
    expect(await createVerdictCache(folder).get(key), bad).toBeNull();
  }
});

test('a cache that cannot be read or written costs time and fails nothing', async () => {
  const { path } = await temporaryFolder();
  await writeFile(join(path, 'file'), '');
  const cache = createVerdictCache(join(path, 'file', 'verdicts'));
  await cache.put(key, record);
  expect(await cache.get(key)).toEqual(record);
  await mkdir(join(path, 'folder', `${key}.json`), { recursive: true });
  expect(await createVerdictCache(join(path, 'folder')).get(key)).toBeNull();
});
