import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { realpath } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { endLeftRunning, openLeftovers, type Leftovers } from '../../src/cli/leftovers.js';
import { parseSpecSlug, type SpecSlug } from '../../src/issue.js';
import { systemClock } from '../../src/platform/clock.js';
import { formatMark, newMark, repositoryMark, type RunMark } from '../../src/platform/mark.js';
import { lookForMarks } from '../mutations/parts.js';
import { temporaryFolder } from '../rig/temp.js';

const graceMs = 5_000;

interface Rig {
  readonly folder: string;
  readonly spec: SpecSlug;
  readonly leftovers: Leftovers;
  readonly notices: readonly string[];
  /** A mark of this repository and Spec, made by a giro that is gone. */
  readonly dead: (change?: Partial<RunMark>) => RunMark;
}

async function setUp(): Promise<Rig> {
  const folder = await realpath((await temporaryFolder()).path);
  const spec = slug('auth');
  const notices: string[] = [];
  const leftovers = openLeftovers({
    ...{ commonDir: folder, spec, run: 'r', root: join(folder, 'work'), graceMs, limits: null, clock: systemClock },
    emit: (event) => notices.push('message' in event ? event.message : event.type),
    look: lookForMarks,
  });
  const dead = (change: Partial<RunMark> = {}): RunMark => {
    const mark = newMark({ repository: repositoryMark(folder), spec, run: 'old' });
    // The number was given to a later process.
    return { ...mark, owner: { ...mark.owner, startTime: '1' }, ...change };
  };
  return { folder, spec, leftovers, notices, dead };
}

function slug(text: string): SpecSlug {
  const parsed = parseSpecSlug(text);
  if (parsed === undefined) throw new Error(text);
  return parsed;
}

/** Something that was left running: in a session of its own, for at most half a minute. */
async function start(environment: Readonly<Record<string, string>>, cwd = '/'): Promise<number> {
  const env = { PATH: process.env['PATH'] ?? '', ...environment };
  const child = spawn('sh', ['-c', 'echo; exec sleep 30'], {
    cwd,
    env,
    detached: true,
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  const { pid } = child;
  if (pid === undefined) throw new Error('it does not start');
  onTestFinished(() => {
    child.kill('SIGKILL');
  });
  await once(child.stdout, 'data');
  return pid;
}

function isRunning(pid: number): boolean {
  try {
    return !/^State:\s+[ZX]/m.test(readFileSync(`/proc/${String(pid)}/status`, 'utf8'));
  } catch {
    return false;
  }
}

const ofWorker = { GIRO_ROLE: 'worker', GIRO_ISSUE: '01-a', GIRO_ATTEMPT: '2' };

describe('what a giro that is gone left running', () => {
  test('is ended before the next run begins, and said', async () => {
    const { leftovers, notices, dead } = await setUp();
    const pid = await start({ GIRO_RUN: formatMark(dead()), ...ofWorker });
    expect(await leftovers.endEarlier()).toBeNull();
    expect(isRunning(pid)).toBe(false);
    expect(notices).toEqual([
      `left running by a giro that was killed, ended now: the agent of 01-a, attempt 2 (process ${String(pid)})`,
    ]);
  });

  test('is ended by giro stop', async () => {
    const { folder, spec, dead } = await setUp();
    const pid = await start({ GIRO_RUN: formatMark(dead()), GIRO_GATE: 'test' });
    const { ended } = await endLeftRunning({
      commonDir: folder,
      spec,
      graceMs,
      clock: systemClock,
      look: lookForMarks,
    });
    expect(isRunning(pid)).toBe(false);
    expect(ended).toEqual([{ pid, command: 'sleep 30', startedFor: 'gate test' }]);
  });

  test('is left alone when it is of another Spec, another repository, or of a giro that may live', async () => {
    const { leftovers, notices, dead } = await setUp();
    const elsewhere = { ...dead().owner, pidNamespace: 'pid:[1]' };
    const others = [dead({ spec: 'other' }), dead({ repository: 'other' }), dead({ owner: elsewhere })];
    const pids = await Promise.all(others.map((mark) => start({ GIRO_RUN: formatMark(mark) })));
    expect(await leftovers.endEarlier()).toBeNull();
    expect(pids.map(isRunning)).toEqual([true, true, true]);
    expect(notices).toEqual([]);
  });
});

describe('what a run leaves running', () => {
  test('is ended with it', async () => {
    const { leftovers, notices } = await setUp();
    const pid = await start({ ...leftovers.environment });
    await leftovers.endOwn();
    expect([isRunning(pid), notices]).toEqual([false, []]);
  });

  test('in a folder is ended before the folder goes to somebody else, but for what its set-up started', async () => {
    const { leftovers, folder } = await setUp();
    const agent = await start({ ...leftovers.environment, ...ofWorker }, folder);
    const daemon = await start({ ...leftovers.environment }, folder);
    const elsewhere = await start({ ...leftovers.environment, ...ofWorker });
    expect(await leftovers.vacate(folder, 'stays')).toEqual([]);
    expect([agent, daemon, elsewhere].map(isRunning)).toEqual([false, true, true]);
    await leftovers.vacate(folder, 'goes');
    expect([daemon, elsewhere].map(isRunning)).toEqual([false, true]);
  });
});
