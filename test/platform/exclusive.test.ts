import { once } from 'node:events';
import { mkdir, readFile, readdir, writeFile } from 'node:fs/promises';
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { describe, expect, onTestFinished, test } from 'vitest';
import { replaceExclusive } from '../../src/platform/exclusive.js';
import { ownIdentity } from '../../src/platform/identity.js';
import { temporaryFolder } from '../rig/temp.js';
import { program } from './program.js';
import type { Program } from './program.js';

/** For each path it is told: tries once, as an engine that starts does, and says whether it won. */
const racer = `
import { createInterface } from 'node:readline';
import { replaceExclusive } from './platform/exclusive.js';
import { linkExclusive, readIfExists } from './platform/files.js';
console.log('ready');
for await (const path of createInterface({ input: process.stdin })) {
  const mine = 'owner ' + process.pid;
  let won = await linkExclusive(path, mine);
  if (!won) {
    const present = await readIfExists(path);
    if (present?.toString() === 'stale') won = await replaceExclusive(path, present, mine);
  }
  console.log(won ? 'won' : 'lost');
}
`;

/** Twenty processes that all go for one path; answers who won. */
async function startRacers(runner: Program): Promise<(path: string) => Promise<readonly number[]>> {
  const children = Array.from({ length: 20 }, () => runner.start());
  onTestFinished(async () => {
    const ends = children.map((child) => once(child, 'exit'));
    for (const child of children) child.stdin!.end();
    await Promise.all(ends);
  });
  const lines = children.map((child) => createInterface({ input: child.stdout! })[Symbol.asyncIterator]());
  const answers = (): Promise<readonly string[]> =>
    Promise.all(lines.map(async (line) => String((await line.next()).value)));
  await answers();
  return async (path) => {
    for (const child of children) child.stdin!.write(`${path}\n`);
    const said = await answers();
    return children.flatMap((child, index) => (said[index] === 'won' ? [child.pid!] : []));
  };
}

function claimOf(path: string, content: string): string {
  return `${path}.${createHash('sha256').update(content).digest('hex').slice(0, 16)}`;
}

test('of twenty processes that want a free lock or that of a dead owner one gets it, and nothing else is left', async () => {
  const runner = await program(racer);
  const race = await startRacers(runner);
  for (const [round, isStale] of [false, true, true, true, true, true, true, true, true].entries()) {
    const folder = join(runner.folder, String(round));
    const path = join(folder, 'lock');
    await mkdir(folder);
    if (isStale) await writeFile(path, 'stale');
    const winners = await race(path);
    expect(winners).toHaveLength(1);
    expect(await readFile(path, 'utf8')).toBe(`owner ${String(winners[0])}`);
    expect(await readdir(folder)).toEqual(['lock']);
  }
});

describe('taking over', () => {
  test('does nothing when the file is no longer what was seen', async () => {
    const path = join((await temporaryFolder()).path, 'lock');
    await writeFile(path, 'new owner');
    expect(await replaceExclusive(path, Buffer.from('old owner'), 'mine')).toBe(false);
    expect(await readFile(path, 'utf8')).toBe('new owner');
    expect(await readdir(join(path, '..'))).toEqual(['lock']);
  });

  test('does nothing when the file is gone', async () => {
    const path = join((await temporaryFolder()).path, 'lock');
    expect(await replaceExclusive(path, Buffer.from('old owner'), 'mine')).toBe(false);
    expect(await readdir(join(path, '..'))).toEqual([]);
  });

  test('leaves it to one that is at it and alive', async () => {
    const path = join((await temporaryFolder()).path, 'lock');
    await writeFile(path, 'old');
    await writeFile(claimOf(path, 'old'), JSON.stringify(ownIdentity()));
    expect(await replaceExclusive(path, Buffer.from('old'), 'mine')).toBe(false);
    expect(await readFile(path, 'utf8')).toBe('old');
  });

  test('goes on where others died while they were at it', async () => {
    const path = join((await temporaryFolder()).path, 'lock');
    const dead = (nonce: string): string => JSON.stringify({ ...ownIdentity(), startTime: '1', nonce });
    await writeFile(path, 'old');
    await writeFile(claimOf(path, 'old'), dead('first'));
    await writeFile(claimOf(claimOf(path, 'old'), dead('first')), dead('second'));
    expect(await replaceExclusive(path, Buffer.from('old'), 'mine')).toBe(true);
    expect(await readFile(path, 'utf8')).toBe('mine');
    expect(await readdir(join(path, '..'))).toEqual(['lock']);
  });

  test('does not guess about a claim it cannot read', async () => {
    const path = join((await temporaryFolder()).path, 'lock');
    await writeFile(path, 'old');
    for (const claim of ['', 'not json', '{}', 'null', '{"pid":"1"}']) {
      await writeFile(claimOf(path, 'old'), claim);
      expect(await replaceExclusive(path, Buffer.from('old'), 'mine')).toBe(false);
    }
  });
});
