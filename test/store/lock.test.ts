import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';
import { ownIdentity } from '../../src/platform/identity.js';
import { lockOwner, takeLock } from '../../src/store/lock.js';
import { temporaryFolder } from '../rig/temp.js';
import { spec } from './rig.js';

const at = '2030-01-01T00:00:00.000Z';

interface Place {
  readonly commonDir: string;
  readonly path: string;
  take(run?: string): ReturnType<typeof takeLock>;
  write(text: string): Promise<void>;
}

async function place(): Promise<Place> {
  const { path: commonDir } = await temporaryFolder();
  const path = join(commonDir, 'giro', 'locks', `${spec}.json`);
  return {
    commonDir,
    path,
    take: (run = 'run-1') => takeLock({ commonDir, spec, run, at }),
    async write(text) {
      await mkdir(dirname(path), { recursive: true });
      await writeFile(path, text);
    },
  };
}

function lockText(change: Readonly<Record<string, unknown>> = {}): string {
  return JSON.stringify({ format_version: 1, ...ownIdentity(), spec, run: 'run-0', at, ...change });
}

async function deadPid(): Promise<number> {
  const child = spawn('true', { stdio: 'ignore' });
  await once(child, 'exit');
  return child.pid ?? 0;
}

describe('a lock', () => {
  test('is held by one, named to the next, and free again after its release', async () => {
    const { take, commonDir, path } = await place();
    const first = await take();
    if (!first.ok) throw new Error(first.failure.kind);
    expect(await lockOwner(commonDir, spec)).toMatchObject({ pid: process.pid });
    const second = await take('run-2');
    expect(second).toMatchObject({ ok: false, failure: { kind: 'locked' } });
    expect(JSON.stringify(second)).toContain(`process ${String(process.pid)}`);
    await first.value.release();
    expect(await lockOwner(commonDir, spec)).toBeNull();
    expect((await take('run-3')).ok).toBe(true);
    expect(await readFile(path, 'utf8')).toContain('run-3');
  });

  test('goes to exactly one of many who want it at once', async () => {
    const { take } = await place();
    const answers = await Promise.all(Array.from({ length: 20 }, (_, index) => take(`run-${String(index)}`)));
    expect(answers.filter((answer) => answer.ok)).toHaveLength(1);
  });

  test('of a dead owner goes to exactly one', async () => {
    const { take, write } = await place();
    await write(lockText({ pid: await deadPid() }));
    const answers = await Promise.all(Array.from({ length: 20 }, (_, index) => take(`run-${String(index)}`)));
    expect(answers.filter((answer) => answer.ok)).toHaveLength(1);
  });

  test.each([
    ['another process has the number now', { startTime: '1' }],
    ['the machine was started again', { bootId: '00000000-0000-0000-0000-000000000000' }],
  ])('is taken over when %s', async (_name, change) => {
    const { take, write } = await place();
    await write(lockText(change));
    expect((await take()).ok).toBe(true);
  });

  test.each([
    ['another host', lockText({ host: 'elsewhere', pid: 1 }), 'cannot be seen from here'],
    ['another pid namespace', lockText({ pidNamespace: 'pid:[1]', pid: 1 }), 'cannot be seen from here'],
    ['an empty file', '', 'cannot be read'],
    ['half a file', lockText().slice(0, 40), 'cannot be read'],
    ['another format', lockText({ format_version: 2 }), 'cannot be read'],
  ])('is never taken from %s', async (_name, text, why) => {
    const { take, write, path } = await place();
    await write(text);
    const answer = await take();
    expect(answer.ok ? '' : JSON.stringify(answer.failure)).toContain(why);
    expect(answer.ok ? '' : JSON.stringify(answer.failure)).toContain(`rm '${path}'`);
    expect(await readFile(path, 'utf8')).toBe(text);
  });

  test('is explained with a command that a shell takes as meant, whatever the folder is called', async () => {
    const { path: folder } = await temporaryFolder();
    const commonDir = join(folder, "o'brien; touch x");
    const path = join(commonDir, 'giro', 'locks', `${spec}.json`);
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, '');
    const answer = await takeLock({ commonDir, spec, run: 'run-1', at });
    const hint = !answer.ok && answer.failure.kind === 'locked' ? (answer.failure.hint ?? '') : '';
    const command = hint.slice(hint.indexOf('rm '));
    expect(command).not.toBe('');
    await promisify(execFile)('sh', ['-c', command], { cwd: folder });
    expect((await takeLock({ commonDir, spec, run: 'run-1', at })).ok).toBe(true);
    expect(await readdir(folder)).toEqual(["o'brien; touch x"]);
  });

  test('that somebody else took over meanwhile is not removed', async () => {
    const { take, write, path } = await place();
    const lock = await take();
    if (!lock.ok) throw new Error(lock.failure.kind);
    await write(lockText({ run: 'run-9' }));
    await lock.value.release();
    expect(await readFile(path, 'utf8')).toContain('run-9');
  });
});
