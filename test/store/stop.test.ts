import { mkdir, readdir, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { announceBacklog, engineLocksOf, isHeld, readEngines } from '../../src/store/engines.js';
import { takeLock, type RunLock } from '../../src/store/lock.js';
import {
  answerStop,
  findStopFile,
  forgetStop,
  readStopAnswer,
  readStopRequest,
  requestStop,
  stopPath,
} from '../../src/store/stop.js';
import { temporaryFolder } from '../rig/temp.js';
import { spec } from './rig.js';

const at = '2030-01-01T00:00:00.000Z';

async function locked(commonDir: string, run = 'run-1'): Promise<RunLock> {
  const lock = await takeLock({ commonDir, spec, run, at });
  if (!lock.ok) throw new Error(lock.failure.kind);
  return lock.value;
}

describe('a request to stop', () => {
  test('is for the holder of one lock, and never for the next', async () => {
    const { path: commonDir } = await temporaryFolder();
    const first = await locked(commonDir);
    expect(await readStopRequest(first)).toBeNull();
    await requestStop(first, { at, now: false });
    await answerStop(first, { at, why: 'it was asked' });
    expect(await readStopRequest(first)).toEqual({ at, now: false });
    await first.release();

    const second = await locked(commonDir, 'run-2');
    expect([await readStopRequest(second), await readStopAnswer(second)]).toEqual([null, null]);
    // What is for another is no reason to keep it; what is for this one is.
    await forgetStop(second, 'own');
    expect(await readStopRequest(first)).not.toBeNull();
    await forgetStop(second, 'others');
    expect([await readStopRequest(first), await readStopAnswer(first)]).toEqual([null, null]);
    await requestStop(second, { at, now: false });
    await forgetStop(second, 'others');
    expect(await readStopRequest(second)).not.toBeNull();
    await forgetStop(second, 'own');
    expect(await readdir(dirname(second.path))).toEqual([`${spec}.json`]);
  });

  test('becomes more urgent, and never less', async () => {
    const { path: commonDir } = await temporaryFolder();
    const lock = await locked(commonDir);
    await requestStop(lock, { at: '1', now: false });
    await requestStop(lock, { at: '2', now: false });
    expect(await readStopRequest(lock)).toEqual({ at: '1', now: false });
    await requestStop(lock, { at: '3', now: true });
    await requestStop(lock, { at: '4', now: false });
    expect(await readStopRequest(lock)).toEqual({ at: '3', now: true });
  });

  test.each(['', 'null', '[]', '{"format_version":1}', '{', '\0'])('that reads %j is none', async (text) => {
    const { path: commonDir } = await temporaryFolder();
    const lock = await locked(commonDir);
    await writeFile(lock.path.replace('.json', '.stop'), text);
    expect(await readStopRequest(lock)).toBeNull();
  });
});

describe('a STOP file', () => {
  test('is what is called so, with its first line, and the command that takes it away', async () => {
    const { path: commonDir } = await temporaryFolder();
    expect(await findStopFile(commonDir, spec)).toBeNull();
    await mkdir(join(commonDir, 'giro'));
    await writeFile(stopPath(commonDir, spec), '\n');
    expect(await findStopFile(commonDir, null)).toBeNull();
    expect(await findStopFile(commonDir, spec)).toMatchObject({ name: `STOP.${spec}`, says: '' });
    await writeFile(stopPath(commonDir, null), `  ${'long '.repeat(100)}\nsecond line\n`);
    const found = await findStopFile(commonDir, spec);
    expect(found).toMatchObject({ name: 'STOP', remove: `rm '${stopPath(commonDir, null)}'` });
    expect(found?.says.length).toBeLessThanOrEqual(200);
  });

  test('may be anything: a folder, a link that leads nowhere', async () => {
    const { path } = await temporaryFolder();
    const commonDir = join(path, "it's");
    await mkdir(join(commonDir, 'giro', 'STOP'), { recursive: true });
    expect(await findStopFile(commonDir, null)).toMatchObject({
      says: '',
      remove: `rm -r '${path}/it'\\''s/giro/STOP'`,
    });
    await symlink('/nowhere', stopPath(commonDir, spec));
    const other = join(path, 'other');
    await mkdir(join(other, 'giro'), { recursive: true });
    await symlink('/nowhere', stopPath(other, spec));
    expect(await findStopFile(other, spec)).toMatchObject({
      says: '',
      remove: expect.stringMatching(/^rm '/) as string,
    });
  });
});

describe('the engines of a repository', () => {
  test('are those that hold a lock, a backlog among them; answers and requests are none', async () => {
    const { path: commonDir } = await temporaryFolder();
    expect(await readEngines(commonDir)).toEqual([]);
    const backlog = await announceBacklog({ commonDir, run: 'run-1', at });
    const lock = await locked(commonDir);
    await takeLock({ commonDir, spec, run: 'answer', at, kind: 'answer' });
    await requestStop(lock, { at, now: false });
    await answerStop(lock, { at, why: '' });
    const found = await readEngines(commonDir);
    expect(found.map(({ spec: of, owner }) => [of, owner?.run, owner?.pid])).toEqual([
      [null, 'run-1', process.pid],
      [spec, 'run-1', process.pid],
    ]);
    expect((await engineLocksOf(commonDir, spec)).map(({ path }) => path).sort()).toEqual(
      [backlog.path, lock.path].sort(),
    );
    expect(await isHeld(backlog)).toBe(true);
    await backlog.release();
    expect(await isHeld(backlog)).toBe(false);
    await writeFile(lock.path, 'torn');
    expect(await readEngines(commonDir)).toMatchObject([{ spec, owner: null }]);
    expect(await engineLocksOf(commonDir, spec)).toEqual([]);
  });

  test('do not grow: the next backlog removes what dead ones left, and keeps what it cannot judge', async () => {
    const { path: commonDir } = await temporaryFolder();
    const first = await announceBacklog({ commonDir, run: 'run-1', at });
    const text = (change: object): string => JSON.stringify({ ...(JSON.parse(first.text) as object), ...change });
    const folder = dirname(first.path);
    await writeFile(join(folder, 'backlog.dead.json'), text({ startTime: '1' }));
    await writeFile(join(folder, 'backlog.elsewhere.json'), text({ host: 'another' }));
    await announceBacklog({ commonDir, run: 'run-2', at });
    expect(await readdir(folder)).toEqual(['backlog.elsewhere.json', 'backlog.run-1.json', 'backlog.run-2.json']);
  });
});
