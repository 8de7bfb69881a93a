import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { StopWatch, type StopAsked } from '../../src/cli/stop-watch.js';
import { systemClock, type Clock } from '../../src/platform/clock.js';
import { takeLock, type RunLock } from '../../src/store/lock.js';
import { readStopAnswer, readStopRequest, requestStop, stopPath } from '../../src/store/stop.js';
import { spec } from '../store/rig.js';
import { FakeClock } from '../rig/clock.js';
import { temporaryFolder } from '../rig/temp.js';

const at = '2030-01-01T00:00:00.000Z';

interface Watched {
  readonly commonDir: string;
  readonly lock: RunLock;
  readonly watch: StopWatch;
  readonly heard: StopAsked[];
  /** Resolves when so much was heard. */
  hears(count: number): Promise<void>;
}

async function watched(clock: Clock, before?: (lock: RunLock, commonDir: string) => Promise<void>): Promise<Watched> {
  const { path: commonDir } = await temporaryFolder();
  const lock = await takeLock({ commonDir, spec, run: 'run-1', at });
  if (!lock.ok) throw new Error(lock.failure.kind);
  await before?.(lock.value, commonDir);
  const watch = new StopWatch(commonDir, clock);
  const heard: StopAsked[] = [];
  const waiting = new Set<() => void>();
  const asked = (one: StopAsked): void => {
    heard.push(one);
    for (const wake of waiting) wake();
  };
  await watch.add({ lock: lock.value, files: [null, spec], asked });
  onTestFinished(() => watch.close());
  const hears = async (count: number): Promise<void> => {
    while (heard.length < count) await new Promise<void>((wake) => waiting.add(wake));
  };
  return { commonDir, lock: lock.value, watch, heard, hears };
}

/** A clock whose sleeps end only when they are cut short. */
const endless: Clock = { ...systemClock, sleep: (_ms, signal) => systemClock.sleep(2 ** 30, signal) };

test('hears what is asked at once, where the system tells, without any look by time', async () => {
  const { lock, watch, heard, hears } = await watched(endless);
  const over = watch.run();
  await requestStop(lock, { at, now: false });
  await hears(1);
  expect(heard).toEqual([{ why: 'giro stop ended it', by: 'stop-command', first: null, now: false }]);
  await requestStop(lock, { at, now: true });
  await hears(2);
  expect(heard[1]).toMatchObject({ now: true });
  await watch.close();
  await over;
  expect([await readStopRequest(lock), await readStopAnswer(lock)]).toEqual([null, null]);
});

test('hears of a file within seconds where nothing tells of changes', async () => {
  const clock = new FakeClock();
  const { path: nowhere } = await temporaryFolder();
  const { lock, heard } = await watched(clock);
  // Its folders come only after it has begun to watch, so that nobody tells.
  const commonDir = join(nowhere, 'later');
  const watch = new StopWatch(commonDir, clock);
  await watch.add({ lock, files: [null], asked: (one) => heard.push(one) });
  const over = watch.run();
  await clock.waiting();
  await mkdir(join(commonDir, 'giro'), { recursive: true });
  await writeFile(stopPath(commonDir, null), 'enough\n');
  await clock.advance(4_999);
  expect(heard).toEqual([]);
  await clock.advance(1);
  await clock.waiting();
  expect(heard).toMatchObject([{ by: 'stop-file', why: 'the STOP file (enough) ended it', now: false }]);
  // Once is enough.
  await clock.advance(60_000);
  expect(heard).toHaveLength(1);
  await watch.close();
  await over;
  expect(clock.sleeping).toBe(0);
});

test('hears what lay there before it began, and forgets what was for an earlier run', async () => {
  const { heard } = await watched(endless, async (lock) => {
    await requestStop(lock, { at, now: false });
  });
  expect(heard).toMatchObject([{ by: 'stop-command' }]);
  const old = await watched(endless, async (lock) => {
    await requestStop({ path: lock.path, text: 'of an earlier run' }, { at, now: true });
  });
  expect(old.heard).toEqual([]);
  expect(await readStopRequest({ path: old.lock.path, text: 'of an earlier run' })).toBeNull();
});

test('waits a moment for what a file says: a shell makes it before it writes', async () => {
  const clock = new FakeClock();
  const { commonDir, lock, watch, heard } = await watched(clock);
  await writeFile(stopPath(commonDir, spec), '');
  const adding = watch.add({ lock, files: [spec], asked: (one) => heard.push(one) });
  await clock.waiting();
  expect(heard).toEqual([]);
  await writeFile(stopPath(commonDir, spec), 'late words\n');
  await clock.advance(50);
  await adding;
  expect(heard[0]).toMatchObject({ why: `the STOP.${spec} file (late words) ended it` });
});
