import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, readFile, realpath } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { StandIn } from './stand-in.js';
import { temporaryFolder } from './temp.js';

interface Started {
  readonly child: ChildProcess;
  readonly ended: Promise<string>;
}

function start(
  argv: readonly string[],
  options: { cwd?: string; env?: Record<string, string>; input?: string } = {},
): Started {
  const [file, ...args] = argv;
  const env = options.env ?? { PATH: process.env['PATH'] ?? '' };
  const child = spawn(file!, args, { cwd: options.cwd, env, stdio: ['pipe', 'pipe', 'pipe'] });
  onTestFinished(() => void child.kill('SIGKILL'));
  let output = '';
  child.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => (output += chunk.toString()));
  child.stdin.end(options.input ?? '');
  const ended = once(child, 'close').then(([code, signal]) => `${String(code ?? signal)} ${output}`);
  return { child, ended };
}

describe('a stand-in', () => {
  test('tells how it was started', async () => {
    const standIn = await StandIn.open();
    const cwd = await realpath((await temporaryFolder()).path);
    const env = { PATH: process.env['PATH'] ?? '', GIRO_ISSUE: '01-a' };
    const { child } = start([...standIn.command('agent'), '--flag', 'a b'], { cwd, env, input: 'the prompt' });
    const call = await standIn.nextInvocation('agent');
    expect(call).toMatchObject({ argv: ['--flag', 'a b'], cwd, env, stdin: 'the prompt', pid: child.pid });
    await call.exit();
    await standIn.close();
  });

  test('does what it is told in its folder', async () => {
    const standIn = await StandIn.open();
    const cwd = (await temporaryFolder()).path;
    await mkdir(join(cwd, 'old'));
    const { ended } = start(standIn.command('agent'), { cwd });
    const call = await standIn.nextInvocation('agent');
    await call.write({ 'a/b.txt': 'text', old: null });
    expect(await call.read('a/b.txt')).toBe('text');
    expect(await readFile(join(cwd, 'a', 'b.txt'), 'utf8')).toBe('text');
    expect(await call.run('ls; echo w >&2')).toEqual({ code: 0, stdout: 'a\n', stderr: 'w\n' });
    await expect(call.run('exit 3')).rejects.toThrow('exit 3');
    expect(await call.tryRun('exit 3')).toMatchObject({ code: 3 });
    await expect(call.read('no')).rejects.toThrow('ENOENT');
    await call.print('out\n');
    await call.print('err\n', 'stderr');
    await call.exit(7);
    expect(await ended).toBe('7 out\nerr\n');
    await standIn.close();
  });

  test('can die by a signal, or ignore one and tell', async () => {
    const standIn = await StandIn.open();
    const { child, ended } = start(standIn.command('agent'));
    const call = await standIn.nextInvocation('agent');
    await call.ignore('SIGTERM');
    child.kill('SIGTERM');
    await call.signalled('SIGTERM');
    expect(call.isEnded).toBe(false);
    await call.kill('SIGKILL');
    expect(await ended).toBe('SIGKILL ');
    await standIn.close();
  });

  test('need not read its input', async () => {
    const standIn = await StandIn.open();
    const { ended } = start(standIn.command('agent', { readsStdin: false }), { input: 'x'.repeat(100) });
    const call = await standIn.nextInvocation('agent');
    expect([call.stdin, call.argv]).toEqual(['', []]);
    await call.exit(0);
    await ended;
    await standIn.close();
  });

  test('can be a shell command', async () => {
    const standIn = await StandIn.open();
    standIn.on('gate', (call) => call.exit(4));
    const { ended } = start(['sh', '-c', `${standIn.shellCommand('gate')} || exit 5`]);
    expect(await ended).toBe('5 ');
    await standIn.close();
  });
});

describe('the test', () => {
  test('sees invocations in order, by name, also those that came before it asked', async () => {
    const standIn = await StandIn.open();
    const first = standIn.nextInvocation('agent');
    start([...standIn.command('gate'), '1']);
    const gate = await standIn.nextInvocation('gate');
    start([...standIn.command('agent'), '1']);
    const one = await first;
    start([...standIn.command('agent'), '2']);
    const two = await standIn.nextInvocation('agent');
    expect([one.argv, two.argv]).toEqual([['1'], ['2']]);
    expect(standIn.counts).toEqual({ agent: 2, gate: 1 });
    await Promise.all([gate, one, two].map((call) => call.exit()));
    await standIn.close();
  });

  test('can play every invocation by a handler, also those that came before it', async () => {
    const standIn = await StandIn.open();
    const early = start([...standIn.command('agent'), 'early']);
    start(standIn.command('other'));
    await (await standIn.nextInvocation('other')).exit();
    standIn.on('agent', async (call) => {
      await call.print(call.argv.join());
    });
    const late = start([...standIn.command('agent'), 'late']);
    expect(await Promise.all([early.ended, late.ended])).toEqual(['0 early', '0 late']);
    await standIn.close();
  });

  test('fails on an invocation nobody looked at, and ends it', async () => {
    const standIn = await StandIn.open();
    const { ended } = start(standIn.command('agent'));
    while (standIn.counts['agent'] === undefined) await new Promise((resolve) => setImmediate(resolve));
    await expect(standIn.close()).rejects.toThrow('agent was started and not looked at');
    expect(await ended).toBe('SIGKILL ');
  });

  test('fails on a process that is still alive, and ends it', async () => {
    const standIn = await StandIn.open();
    const { ended } = start(standIn.command('agent'));
    const call = await standIn.nextInvocation('agent');
    await expect(standIn.close()).rejects.toThrow(`agent (${String(call.pid)}) is still alive`);
    expect(await ended).toBe('SIGKILL ');
  });

  test('fails when a handler did', async () => {
    const standIn = await StandIn.open();
    standIn.on('agent', () => {
      throw new Error('not as expected');
    });
    expect(await start(standIn.command('agent')).ended).toBe('99 ');
    await expect(standIn.close()).rejects.toThrow('not as expected');
  });

  test('does not fail when a process that it plays is killed', async () => {
    const standIn = await StandIn.open();
    standIn.on('agent', async (call) => {
      process.kill(call.pid, 'SIGKILL');
      await call.run('true');
    });
    expect(await start(standIn.command('agent')).ended).toBe('SIGKILL ');
    await standIn.close();
  });
});
