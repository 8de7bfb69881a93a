import { mkdir, readFile, stat, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { createDriver } from '../../src/drivers/create.js';
import type { DriverRequest } from '../../src/drivers/driver.js';
import { workerContract, type WorkerOutcome } from '../../src/drivers/worker.js';
import { systemClock, type Clock } from '../../src/platform/clock.js';
import { FakeClock } from '../rig/clock.js';
import { issue, stage, type Stage } from './request.js';

async function play(at: Stage, script: unknown, clock: Clock = systemClock): Promise<WorkerOutcome> {
  const text = typeof script === 'string' ? script : JSON.stringify(script);
  await writeFile(join(at.repository, 'script.json'), text);
  const driver = createDriver(
    { kind: 'scripted', name: 'demo', script: 'script.json', env: [], reports: { cost: false, tokens: false } },
    { clock, repository: at.repository, own: {} },
  );
  return driver.run(at.request, workerContract);
}

async function playOne(attempt: unknown, change: Partial<DriverRequest> = {}): Promise<[WorkerOutcome, Stage]> {
  const at = await stage(change);
  return [await play(at, { issues: { '01-store': [attempt] } }), at];
}

function read(at: Stage, path: string): Promise<string> {
  return readFile(join(at.request.folder, path), 'utf8');
}

test('edits are made in the worktree, in order, and shown in the transcript', async () => {
  const at = await stage();
  await writeFile(join(at.request.folder, 'old.txt'), 'old');
  await writeFile(join(at.request.folder, 'run.sh'), 'echo one\necho one\n', { mode: 0o755 });
  const { result, ended, tail } = await play(at, {
    issues: {
      '01-store': [
        {
          output: ['Reading the Issue', 'two\nlines'],
          edits: [
            { write: 'src/deep/a.ts', text: 'export const a = 1;\n' },
            { replace: 'src/deep/a.ts', find: '1', with: '$& 2' },
            { replace: 'run.sh', find: 'one', with: 'two' },
            { write: 'bin/new.sh', text: '#!/bin/sh\n', executable: true },
            { delete: 'old.txt' },
          ],
          envelope: { status: 'done', summary: 'made a' },
        },
      ],
    },
  });
  expect(result).toEqual({ kind: 'finished', envelope: { status: 'done', summary: 'made a' } });
  expect(ended).toEqual({ kind: 'exited', code: 0 });
  expect(await read(at, 'src/deep/a.ts')).toBe('export const a = $& 2;\n');
  expect(await read(at, 'run.sh')).toBe('echo two\necho one\n');
  expect((await stat(join(at.request.folder, 'run.sh'))).mode & 0o777).toBe(0o755);
  expect((await stat(join(at.request.folder, 'bin/new.sh'))).mode & 0o777).toBe(0o755);
  await expect(read(at, 'old.txt')).rejects.toThrow('ENOENT');
  expect(tail).toBe(
    'Reading the Issue\ntwo\nlines\nwrite src/deep/a.ts\nedit src/deep/a.ts\nedit run.sh\nwrite bin/new.sh\ndelete old.txt',
  );
  expect(await readFile(at.request.envelopeFile, 'utf8')).toBe('{"status":"done","summary":"made a"}');
});

test('attempt k plays entry k, and there is nothing beyond the list', async () => {
  const issues = { '01-store': [{ exit: 3 }, { envelope: { status: 'blocked', question: 'q' } }] };
  expect((await play(await stage({ attempt: 1 }), { issues })).result).toEqual({
    kind: 'failed',
    reason: 'agent exited 3',
  });
  expect((await play(await stage({ attempt: 2 }), { issues })).result).toEqual({
    kind: 'finished',
    envelope: { status: 'blocked', question: 'q' },
  });
  expect((await play(await stage({ attempt: 3 }), { issues })).result).toEqual({
    kind: 'failed',
    reason: 'no scripted attempt 3 for 01-store',
  });
  expect((await play(await stage({ issue: issue('02-api') }), { issues })).result.kind).toBe('failed');
});

test('an attempt without an envelope is done, and a bad one is judged like that of any agent', async () => {
  expect((await playOne({}))[0].result).toEqual({ kind: 'finished', envelope: { status: 'done' } });
  expect((await playOne({ envelope: { status: 'maybe' } }))[0].result.kind).toBe('failed');
  expect((await playOne({ envelope: null }))[0].result.kind).toBe('failed');
  expect((await playOne({ envelope: { status: 'unavailable', reason: 'auth' }, exit: 75 }))[0].result.kind).toBe(
    'operation',
  );
});

test('a text to replace that is not there is a clear failure', async () => {
  const [{ result, tail }] = await playOne({
    edits: [
      { write: 'a.ts', text: 'a' },
      { replace: 'a.ts', find: 'b', with: 'c' },
    ],
  });
  expect(result).toEqual({ kind: 'failed', reason: 'the script replaces "b" in a.ts, which does not hold it' });
  expect(tail).toContain('which does not hold it');
  expect((await playOne({ edits: [{ replace: 'no.ts', find: 'b', with: '' }] }))[0].result.kind).toBe('failed');
  expect((await playOne({ edits: [{ delete: 'no.ts' }] }))[0].result.kind).toBe('failed');
});

test('no path leads out of the worktree or into .git', async () => {
  for (const path of [
    '../a',
    'a/../../b',
    '/etc/x',
    '.git/config',
    'sub/.GIT/hooks/x',
    './a',
    'a//b',
    '',
    'a\\b',
    'a\0b',
  ]) {
    const [{ result }, at] = await playOne({ edits: [{ write: path, text: 'x' }] });
    expect(result, path).toMatchObject({ kind: 'failed' });
    await expect(readFile(join(at.request.folder, '..', 'a'))).rejects.toThrow('ENOENT');
  }
});

test('a link on the way is refused', async () => {
  const at = await stage();
  const outside = join(at.request.folder, '..', 'outside');
  await mkdir(outside);
  await writeFile(join(outside, 'a.ts'), 'before');
  await symlink(outside, join(at.request.folder, 'folder'));
  await symlink(join(outside, 'a.ts'), join(at.request.folder, 'file.ts'));
  for (const path of ['folder/a.ts', 'file.ts', 'folder']) {
    const { result } = await play(at, { issues: { '01-store': [{ edits: [{ write: path, text: 'after' }] }] } });
    expect(result, path).toEqual({ kind: 'failed', reason: `the script names ${path}, which meets a link on its way` });
  }
  expect(await readFile(join(outside, 'a.ts'), 'utf8')).toBe('before');
});

test('a script that cannot be read is a clear failure', async () => {
  const reasonOf = async (script: unknown): Promise<string> => {
    const { result } = await play(await stage(), script);
    return result.kind === 'failed' ? result.reason : result.kind;
  };
  expect(await reasonOf('{')).toContain('script.json is not JSON');
  expect(await reasonOf({ issues: [] })).toContain('script.json is not valid: issues');
  expect(await reasonOf({ issues: { '01-store': [{ edit: [] }] } })).toContain('issues.01-store.0');
  expect(await reasonOf({ issues: { '01-store': [{ edits: [{ write: 'a' }] }] } })).toContain(
    'issues.01-store.0.edits.0',
  );
  const at = await stage();
  const driver = createDriver(
    { kind: 'scripted', name: 'demo', script: 'no.json', env: [], reports: { cost: false, tokens: false } },
    { clock: systemClock, repository: at.repository, own: {} },
  );
  expect((await driver.run(at.request, workerContract)).result).toEqual({
    kind: 'failed',
    reason: 'the script no.json does not exist',
  });
});

test('a scene that outlasts the time limit is timed out, and its edits are not made', async () => {
  const [at, clock] = [await stage({ timeoutMs: 60_000 }), new FakeClock()];
  const scene = { output: ['one', 'two', 'three'], waitMs: 90_000, edits: [{ write: 'a.ts', text: '' }] };
  const playing = play(at, { issues: { '01-store': [scene] } }, clock);
  for (let index = 0; index < 2; index += 1) {
    await clock.waiting();
    await clock.advance(30_000);
  }
  const { result, ended, durationMs, tail } = await playing;
  expect(result).toEqual({ kind: 'failed', reason: 'agent timed out after 1m' });
  expect(ended).toEqual({ kind: 'timed-out', limitMs: 60_000 });
  expect([durationMs, tail]).toEqual([60_000, 'one\ntwo']);
  await expect(read(at, 'a.ts')).rejects.toThrow('ENOENT');
});

test('a stop ends a scene at once, and its edits are not made', async () => {
  const [at, clock] = [await stage(), new FakeClock()];
  const scene = { waitMs: 50_000, edits: [{ write: 'a.ts', text: '' }] };
  const playing = play(at, { issues: { '01-store': [scene] } }, clock);
  await clock.waiting();
  at.stop.abort('enough');
  expect(await playing).toMatchObject({ result: { kind: 'stopped' }, ended: { kind: 'cancelled', reason: 'enough' } });
  await expect(read(at, 'a.ts')).rejects.toThrow('ENOENT');
});

test('an envelope of an earlier call is not taken for this one', async () => {
  const at = await stage();
  await writeFile(at.request.envelopeFile, '{"status":"blocked"}');
  const { result } = await play(at, { issues: { '01-store': [{}] } });
  expect(result).toEqual({ kind: 'finished', envelope: { status: 'done' } });
});

test('a full disk is an operation, not a bug and not the work of the agent', async () => {
  const at = await stage();
  const broken: Clock = {
    ...systemClock,
    sleep: () => Promise.reject(Object.assign(new Error('no space left'), { code: 'ENOSPC' })),
  };
  const script = { issues: { '01-store': [{ waitMs: 1 }] } };
  expect((await play(at, script, broken)).result).toEqual({ kind: 'operation', reason: 'the disk is full' });
  const bug: Clock = { ...systemClock, sleep: () => Promise.reject(new Error('a bug')) };
  await expect(play(at, script, bug)).rejects.toThrow('a bug');
});
