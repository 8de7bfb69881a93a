import { once } from 'node:events';
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { systemClock } from '../../src/platform/clock.js';
import { ownIdentity } from '../../src/platform/identity.js';
import { ShortLock } from '../../src/platform/short-lock.js';
import { FakeClock } from '../rig/clock.js';
import { scaled } from '../rig/scale.js';
import { temporaryFolder } from '../rig/temp.js';
import { program } from './program.js';

const processes = 6;
const holds = scaled(25, 500);

/** Says in one file when it has the lock and when it lets go; killed in the middle of the last hold when it is told to. */
const holder = `
import { appendFileSync } from 'node:fs';
import { systemClock } from './platform/clock.js';
import { ShortLock } from './platform/short-lock.js';
const [path, log, holds, dies] = process.argv.slice(2);
const lock = new ShortLock({ path, guards: 'a test', clock: systemClock });
for (let count = 1; count <= Number(holds); count += 1) {
  const held = await lock.whileAlone(async () => {
    appendFileSync(log, 'in ' + process.pid + '\\n');
    await systemClock.sleep(1);
    if (dies === 'dies' && count === Number(holds)) process.kill(process.pid, 'SIGKILL');
    appendFileSync(log, 'out ' + process.pid + '\\n');
  });
  if (!held.ok) throw new Error(held.failure.message);
}
`;

interface Place {
  readonly path: string;
  readonly clock: FakeClock;
  readonly lock: ShortLock;
  write(text: string): Promise<void>;
}

async function place(): Promise<Place> {
  const path = join((await temporaryFolder()).path, 'short-lock', 'owner.json');
  const clock = new FakeClock();
  await mkdir(dirname(path));
  return {
    path,
    clock,
    lock: new ShortLock({ path, guards: 'a test', clock }),
    write: (text) => writeFile(path, text),
  };
}

const owned = (change: object = {}): string => JSON.stringify({ ...ownIdentity(), hold: 'another', ...change });

test('processes have it one at a time, also when some are killed while they have it', async () => {
  const runner = await program(holder);
  const [path, log] = [join(runner.folder, 'lock', 'owner.json'), join(runner.folder, 'log')];
  const children = Array.from({ length: processes }, (_, at) =>
    runner.start([path, log, String(holds), at % 3 === 0 ? 'dies' : 'lives']),
  );
  const ends = await Promise.all(children.map(async (child) => (await once(child, 'exit')) as [number | null]));
  expect(ends.filter(([code]) => code === 0)).toHaveLength(processes - 2);
  const lines = (await readFile(log, 'utf8')).trimEnd().split('\n');
  const isKilled = (pid: string): boolean => children.some((child, at) => at % 3 === 0 && String(child.pid) === pid);
  let inside: string | null = null;
  for (const [at, line] of lines.entries()) {
    const [what, pid = ''] = line.split(' ');
    if (what === 'out') expect(pid).toBe(inside);
    else if (inside !== null) {
      // It died inside, so nothing more is heard of it.
      expect(isKilled(inside)).toBe(true);
      expect(lines.slice(at).filter((later) => later.endsWith(` ${String(inside)}`))).toEqual([]);
    }
    inside = what === 'in' ? pid : null;
  }
  expect(lines.filter((line) => line.startsWith('in'))).toHaveLength(processes * holds);
  expect(lines.filter((line) => line.startsWith('out'))).toHaveLength(processes * holds - 2);
  // One that was killed last leaves its file to whoever comes next.
  for (const name of await readdir(dirname(path))) expect(name).toBe('owner.json');
});

describe('a short lock', () => {
  test('goes in the order it was asked for, and is free after work that throws', async () => {
    const { lock, path } = await place();
    const done: number[] = [];
    const first = lock.whileAlone(() => Promise.reject(new Error('broken')));
    const others = [1, 2, 3].map((at) => lock.whileAlone(() => Promise.resolve(done.push(at))));
    await expect(first).rejects.toThrow('broken');
    await Promise.all(others);
    expect(done).toEqual([1, 2, 3]);
    expect(await readdir(dirname(path))).toEqual([]);
  });

  test.each([
    ['its owner is dead', owned({ startTime: '1' })],
    ['the machine was started again', owned({ bootId: '00000000-0000-0000-0000-000000000000' })],
    ['a power cut left an empty file', ''],
    ['a power cut left a file of NULs', '\0'.repeat(200)],
  ])('is taken over when %s', async (_name, text) => {
    const { lock, path, write } = await place();
    await write(text);
    expect(await lock.whileAlone(() => Promise.resolve('done'))).toEqual({ ok: true, value: 'done' });
    expect(await readdir(dirname(path))).toEqual([]);
  });

  test.each([
    ['one that lives', owned(), `process ${String(process.pid)}`],
    ['one of another host', owned({ host: 'elsewhere', pid: 1 }), 'process 1 on elsewhere'],
    ['one of another pid namespace', owned({ pidNamespace: 'pid:[1]', pid: 1 }), 'process 1'],
    ['one that cannot be read', '{"pid": 1', 'somebody'],
  ])('is not taken from %s: whoever waits is told after half a minute', async (_name, text, who) => {
    const { lock, path, clock, write } = await place();
    await write(text);
    const waiting = lock.whileAlone(() => Promise.reject(new Error('not alone')));
    await clock.waiting();
    await clock.advance(31_000);
    const answer = JSON.stringify(await waiting);
    expect(answer).toContain('"kind":"locked"');
    expect(answer).toContain(who);
    expect(answer).toContain(`rm '${path}'`);
    expect(await readFile(path, 'utf8')).toBe(text);
    // The next does not wait for the same hold all over again.
    expect(await lock.whileAlone(() => Promise.reject(new Error('not alone')))).toMatchObject({ ok: false });
  });

  test('is waited for as long as it changes hands', async () => {
    const { lock, clock, path, write } = await place();
    await write(owned({ hold: '0' }));
    const waiting = lock.whileAlone(() => Promise.resolve('done'));
    await clock.waiting();
    for (const hold of ['1', '2', '3']) {
      await clock.advance(20_000);
      await write(owned({ hold }));
    }
    await clock.advance(20_000);
    await rm(path);
    await clock.advance(1_000);
    expect(await waiting).toEqual({ ok: true, value: 'done' });
  });

  test('that somebody else took after a person removed it stays theirs', async () => {
    const { path } = await place();
    const lock = new ShortLock({ path, guards: 'a test', clock: systemClock });
    await lock.whileAlone(() => writeFile(path, owned()));
    expect(await readFile(path, 'utf8')).toBe(owned());
  });
});
