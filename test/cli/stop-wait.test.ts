import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { enginesToStop, waitForEnd, type Ended } from '../../src/cli/stop-wait.js';
import { endLine } from '../../src/cli/stop-text.js';
import { systemClock, type Clock } from '../../src/platform/clock.js';
import { ownIdentity, parseProcessStat } from '../../src/platform/identity.js';
import { readFileSync } from 'node:fs';
import { spec } from '../store/rig.js';
import { temporaryFolder } from '../rig/temp.js';

interface Engine {
  readonly commonDir: string;
  readonly child: ChildProcess;
  readonly ended: Promise<unknown>;
  /** Lets a minute pass with each look, and so never waits itself. */
  stop(options: { readonly now: boolean; readonly progress?: () => void }): Promise<readonly Ended[]>;
}

/** A process that holds a lock, which says of it what the test wants. */
async function engine(
  change: Readonly<Record<string, unknown>>,
  script: string,
  file = `${spec}.json`,
): Promise<Engine> {
  const { path: commonDir } = await temporaryFolder();
  const child = spawn(
    process.execPath,
    ['-e', `${script}; process.stdout.write('ready'); setInterval(() => {}, 1000)`],
    {
      stdio: ['ignore', 'pipe', 'ignore'],
    },
  );
  onTestFinished(() => void child.kill('SIGKILL'));
  const ended = once(child, 'exit');
  await once(child.stdout, 'data');
  const pid = child.pid ?? 0;
  const { startTime } = parseProcessStat(readFileSync(`/proc/${String(pid)}/stat`, 'latin1'));
  const lock = { format_version: 1, ...ownIdentity(), pid, startTime, spec, run: 'run-1', at: '2030', ...change };
  const path = join(commonDir, 'giro', 'locks', file);
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, JSON.stringify(lock));
  return {
    commonDir,
    child,
    ended,
    async stop({ now, progress = () => undefined }) {
      const { engines } = await enginesToStop(commonDir, null);
      return waitForEnd(engines, { now, waitMs: 120_000, clock: hurried(), progress });
    },
  };
}

/** Time that goes a second on with each look, which really takes some milliseconds. */
function hurried(): Clock {
  let passed = 0;
  return {
    ...systemClock,
    monotonic: () => passed,
    sleep: async (_ms, signal) => {
      passed += 1_000;
      await systemClock.sleep(20, signal);
    },
  };
}

const keepsSignals = `for (const name of ['SIGTERM', 'SIGINT']) process.on(name, () => {})`;

describe('giro stop', () => {
  test('sends no signal to whoever does not answer, unless it is to be at once', async () => {
    const { stop, child } = await engine({}, '');
    const [ended] = await stop({ now: false });
    expect(ended?.outcome).toBe('running');
    expect([child.exitCode, child.signalCode]).toEqual([null, null]);
  });

  test('at once ends a giro that does not answer: by SIGTERM, and one that keeps that by SIGKILL', async () => {
    const first = await engine({}, '');
    expect((await first.stop({ now: true }))[0]?.outcome).toBe('forced');
    await first.ended;
    expect(first.child.signalCode).toBe('SIGTERM');
    const second = await engine({}, keepsSignals);
    expect((await second.stop({ now: true }))[0]?.outcome).toBe('forced');
    await second.ended;
    expect(second.child.signalCode).toBe('SIGKILL');
  });

  test.each([
    ['that began at another time', { startTime: '1' }, 'dead'],
    ['of another boot', { bootId: 'other' }, 'dead'],
    ['of another host', { host: 'build7 1234' }, 'unseen'],
    ['of another container', { pidNamespace: 'pid:[1]' }, 'unseen'],
    ['on a system that does not tell', { bootId: '' }, 'unseen'],
  ])('never signals a process %s', async (_name, change, expected) => {
    const { stop, child } = await engine(change, '');
    const ended = await stop({ now: true });
    expect(ended.map(({ outcome }) => outcome)).toEqual(expected === 'dead' ? [] : ['unseen']);
    expect([child.exitCode, child.signalCode]).toEqual([null, null]);
    const [unseen] = ended;
    if (unseen === undefined) return;
    const text = endLine(unseen, { now: true, file: null });
    expect(text).toContain('cannot be seen from here\n  stop it there: giro stop ');
    expect(text).toMatch(/or when it is surely gone: rm '.*\.json'$/);
  });

  test('never signals a backlog for one of its Specs', async () => {
    const { commonDir, child } = await engine({ spec: '' }, '', 'backlog.run-1.json');
    const own = JSON.parse(readFileSync(join(commonDir, 'giro/locks/backlog.run-1.json'), 'utf8')) as object;
    await writeFile(join(commonDir, 'giro', 'locks', `${spec}.json`), JSON.stringify({ ...own, spec }));
    const { engines, others } = await enginesToStop(commonDir, spec);
    expect(engines).toMatchObject([{ spec, isWhole: false, isSeen: true }]);
    expect(others).toHaveLength(1);
    const [ended] = await waitForEnd(engines, {
      now: true,
      waitMs: 120_000,
      clock: hurried(),
      progress: () => undefined,
    });
    expect(ended?.outcome).toBe('running');
    expect([child.exitCode, child.signalCode]).toEqual([null, null]);
    const all = await enginesToStop(commonDir, null);
    expect(all.engines).toMatchObject([{ spec: null, specs: [spec], isWhole: true }]);
  });

  test('says of one that died meanwhile that it left its lock', async () => {
    const { stop, child } = await engine({}, '');
    const [gone] = await stop({ now: false, progress: () => child.kill('SIGKILL') });
    expect(gone?.outcome).toBe('gone');
  });
});
