import { getEventListeners } from 'node:events';
import { readFileSync, readdirSync } from 'node:fs';
import { chmod, mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { endEveryProcess, runProcess } from '../../src/platform/process.js';
import type { ProcessRequest } from '../../src/platform/process.js';
import { FakeClock } from '../rig/clock.js';
import { StandIn } from '../rig/stand-in.js';
import type { Invocation } from '../rig/stand-in.js';
import { temporaryFolder } from '../rig/temp.js';
import { program } from './program.js';

const env = { PATH: process.env['PATH'] ?? '' };
const timeoutMs = 60_000;
const graceMs = 10_000;

interface Setup {
  readonly folder: string;
  readonly clock: FakeClock;
  readonly stop: AbortController;
  readonly log: () => Promise<string>;
  /** A request with nothing unusual in it. */
  readonly request: (argv: readonly [string, ...string[]], more?: Partial<ProcessRequest>) => ProcessRequest;
}

async function setUp(): Promise<Setup> {
  const folder = (await temporaryFolder()).path;
  const clock = new FakeClock();
  const stop = new AbortController();
  const logFile = join(folder, 'logs', 'log');
  return {
    folder,
    clock,
    stop,
    log: () => readFile(logFile, 'utf8'),
    request: (argv, more) => ({
      argv,
      cwd: folder,
      env,
      logFile,
      timeoutMs,
      graceMs,
      signal: stop.signal,
      clock,
      ...more,
    }),
  };
}

async function openStandIn(): Promise<StandIn> {
  const standIn = await StandIn.open();
  onTestFinished(() => standIn.close());
  return standIn;
}

/** A child of a stand-in that holds its output open and ignores SIGTERM. */
async function startDaemon(standIn: StandIn, parent: Invocation): Promise<Invocation> {
  await parent.start(standIn.shellCommand('daemon', { readsStdin: false }));
  const daemon = await standIn.nextInvocation('daemon');
  await daemon.ignore('SIGTERM');
  return daemon;
}

/** Living processes of a group, by /proc. */
function membersOf(group: number): readonly number[] {
  return readdirSync('/proc')
    .filter((name) => /^[0-9]+$/.test(name))
    .filter((name) => {
      try {
        const stat = readFileSync(`/proc/${name}/stat`, 'latin1');
        const [state, , pgrp] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
        return Number(pgrp) === group && state !== 'Z';
      } catch {
        return false;
      }
    })
    .map(Number);
}

/** Resolves when a process is no longer in a group. */
function left(pid: number, group: number): Promise<void> {
  return until(() => !membersOf(group).includes(pid));
}

/** Resolves when nobody of a group is left, where nobody waited for that. */
function emptied(group: number): Promise<void> {
  return until(() => membersOf(group).length === 0);
}

/** Looks again and again, since nobody tells, but not for ever. */
async function until(isSo: () => boolean): Promise<void> {
  for (let looks = 0; !isSo(); looks += 1) {
    if (looks > 5_000) throw new Error('it never is');
    await new Promise((resolve) => setImmediate(resolve));
  }
}

function openDescriptors(): number {
  return readdirSync('/proc/self/fd').length;
}

describe('a process that ends by itself', () => {
  test('exits with its code', async () => {
    const { request } = await setUp();
    expect((await runProcess(request(['sh', '-c', 'exit 0']))).ended).toEqual({ kind: 'exited', code: 0 });
    expect((await runProcess(request(['sh', '-c', 'exit 7']))).ended).toEqual({ kind: 'exited', code: 7 });
  });

  test('sees the given folder and environment, and nothing more', async () => {
    const { request, log, folder } = await setUp();
    await runProcess(request(['env'], { env: { ...env, GIRO_X: 'a b' } }));
    expect((await log()).trim().split('\n').sort()).toEqual(['GIRO_X=a b', `PATH=${env.PATH}`].sort());
    await runProcess(request(['pwd']));
    expect(await log()).toContain(`${folder}\n`);
  });

  test('is signalled when somebody else kills it', async () => {
    const { request } = await setUp();
    const standIn = await openStandIn();
    const running = runProcess(request(standIn.command('agent')));
    const call = await standIn.nextInvocation('agent');
    await call.kill('SIGKILL');
    expect((await running).ended).toEqual({ kind: 'signalled', signal: 'SIGKILL' });
    expect(membersOf(call.pid)).toEqual([]);
  });

  test('tells how long it ran by the clock', async () => {
    const { request, clock } = await setUp();
    const standIn = await openStandIn();
    const running = runProcess(request(standIn.command('agent')));
    const call = await standIn.nextInvocation('agent');
    await clock.advance(1_234);
    await call.exit(0);
    expect((await running).durationMs).toBe(1_234);
  });

  test('takes what is left of its group with it', async () => {
    const { request } = await setUp();
    const standIn = await openStandIn();
    const running = runProcess(request(standIn.command('gate')));
    const call = await standIn.nextInvocation('gate');
    await call.start('sleep 300 & sleep 300; wait');
    await call.exit(0);
    expect((await running).ended).toEqual({ kind: 'exited', code: 0 });
    expect(membersOf(call.pid)).toEqual([]);
  });

  test('takes a daemon with it that ignores SIGTERM and holds its output open, after at most two seconds', async () => {
    const { request, clock } = await setUp();
    const standIn = await openStandIn();
    const running = runProcess(request(standIn.command('gate')));
    const call = await standIn.nextInvocation('gate');
    const daemon = await startDaemon(standIn, call);
    await call.exit(3);
    await daemon.signalled('SIGTERM');
    await clock.advance(1_999);
    expect(daemon.isEnded).toBe(false);
    await clock.advance(1);
    expect((await running).ended).toEqual({ kind: 'exited', code: 3 });
    expect(membersOf(call.pid)).toEqual([]);
  });

  test('does not wait for a daemon that left the group and holds its output open', async () => {
    const { request } = await setUp();
    const standIn = await openStandIn();
    const running = runProcess(request(standIn.command('gate')));
    const call = await standIn.nextInvocation('gate');
    const daemon = await call.start('exec setsid sleep 300');
    await left(daemon, call.pid);
    await call.exit(0);
    expect((await running).ended).toEqual({ kind: 'exited', code: 0 });
    process.kill(daemon, 'SIGKILL');
  });

  test('lets the tail of a pipeline finish', async () => {
    const { request, log } = await setUp();
    await runProcess(request(['sh', '-c', '(sleep 0.02; echo late) & exit 0']));
    expect(await log()).toBe('late\n');
  });
});

describe('a process that is ended', () => {
  test('times out with its grandchildren', async () => {
    const { request, clock } = await setUp();
    const standIn = await openStandIn();
    const running = runProcess(request(standIn.command('agent')));
    const call = await standIn.nextInvocation('agent');
    await call.start('sleep 300 & sleep 300; wait');
    await clock.advance(timeoutMs);
    expect((await running).ended).toEqual({ kind: 'timed-out', limitMs: timeoutMs });
    expect(membersOf(call.pid)).toEqual([]);
  });

  test('is killed after the grace when it ignores SIGTERM', async () => {
    const { request, clock } = await setUp();
    const standIn = await openStandIn();
    const running = runProcess(request(standIn.command('agent')));
    const call = await standIn.nextInvocation('agent');
    await call.ignore('SIGTERM');
    const daemon = await startDaemon(standIn, call);
    await clock.advance(timeoutMs);
    await Promise.all([call.signalled('SIGTERM'), daemon.signalled('SIGTERM')]);
    await clock.advance(graceMs - 1);
    expect([call.isEnded, daemon.isEnded]).toEqual([false, false]);
    await clock.advance(1);
    expect((await running).ended).toEqual({ kind: 'timed-out', limitMs: timeoutMs });
    expect(membersOf(call.pid)).toEqual([]);
  });

  test('keeps its reason when it answers SIGTERM with an exit of its own', async () => {
    const { request, clock } = await setUp();
    const standIn = await openStandIn();
    const running = runProcess(request(standIn.command('agent')));
    const call = await standIn.nextInvocation('agent');
    await call.ignore('SIGTERM');
    await clock.advance(timeoutMs);
    await call.signalled('SIGTERM');
    await call.exit(0);
    expect((await running).ended.kind).toBe('timed-out');
  });

  test('keeps its first reason', async () => {
    const { request, clock, stop } = await setUp();
    const standIn = await openStandIn();
    const running = runProcess(request(standIn.command('agent')));
    const call = await standIn.nextInvocation('agent');
    await call.ignore('SIGTERM');
    stop.abort('stopping');
    await call.signalled('SIGTERM');
    await clock.advance(timeoutMs);
    expect((await running).ended).toEqual({ kind: 'cancelled', reason: 'stopping' });
  });

  test('is cancelled even while it is stopped by a signal, without waiting for the grace', async () => {
    const { request, stop } = await setUp();
    const standIn = await openStandIn();
    const running = runProcess(request(standIn.command('agent')));
    const call = await standIn.nextInvocation('agent');
    process.kill(call.pid, 'SIGSTOP');
    stop.abort(new Error('interrupted'));
    expect((await running).ended).toEqual({ kind: 'cancelled', reason: 'interrupted' });
    expect(membersOf(call.pid)).toEqual([]);
  });

  test('is not started when it was cancelled before', async () => {
    const { request, stop, folder } = await setUp();
    stop.abort('no more');
    const { ended } = await runProcess(request(['sh', '-c', 'touch started']));
    expect(ended).toEqual({ kind: 'cancelled', reason: 'no more' });
    expect(readdirSync(folder)).not.toContain('started');
  });

  test('stalls when the watch says so, which is asked once a second', async () => {
    const { request, clock } = await setUp();
    const standIn = await openStandIn();
    let asked = 0;
    const watch = (): Promise<string | null> => Promise.resolve(++asked === 3 ? 'the result is there' : null);
    const running = runProcess(request(standIn.command('agent'), { watch }));
    const call = await standIn.nextInvocation('agent');
    await clock.advance(2_999);
    expect(asked).toBe(2);
    await clock.advance(1);
    expect((await running).ended).toEqual({ kind: 'stalled', reason: 'the result is there' });
    expect(membersOf(call.pid)).toEqual([]);
  });

  test('leaves nothing behind when the watch itself fails', async () => {
    const { request, clock } = await setUp();
    const standIn = await openStandIn();
    const watch = (): Promise<string | null> => Promise.reject(new Error('a bug'));
    const running = runProcess(request(standIn.command('agent'), { watch }));
    const failure = expect(running).rejects.toThrow('a bug');
    const call = await standIn.nextInvocation('agent');
    await clock.advance(1_000);
    await failure;
    expect(membersOf(call.pid)).toEqual([]);
  });

  test('stalls when it writes more than it may, to both files together', async () => {
    const { request, clock, folder } = await setUp();
    const standIn = await openStandIn();
    await mkdir(join(folder, 'logs'));
    await writeFile(join(folder, 'logs', 'log'), 'x'.repeat(900)); // What an earlier process wrote does not count.
    const limit = { maxOutputBytes: 1_000, outputFile: join(folder, 'out') };
    const running = runProcess(request(standIn.command('agent'), limit));
    const call = await standIn.nextInvocation('agent');
    await call.print('x'.repeat(600), 'stdout');
    await clock.advance(250);
    await call.print('x'.repeat(400), 'stderr');
    await clock.waiting(2); // The time limit and the next look, which comes after the answer of the disk.
    await clock.advance(250);
    await clock.waiting(2);
    expect(call.isEnded).toBe(false);
    await call.print('x', 'stderr');
    await clock.advance(250);
    expect((await running).ended).toEqual({ kind: 'stalled', reason: 'output limit' });
    expect(membersOf(call.pid)).toEqual([]);
  });

  test('dies at once with every other when everything is ended', async () => {
    const { request, folder } = await setUp();
    const standIn = await openStandIn();
    const first = runProcess(request(standIn.command('first')));
    const second = runProcess(request(standIn.command('second'), { logFile: join(folder, 'second') }));
    const calls = [await standIn.nextInvocation('first'), await standIn.nextInvocation('second')];
    for (const call of calls) await call.ignore('SIGTERM');
    endEveryProcess();
    expect((await first).ended.kind).toBe('cancelled');
    expect((await second).ended.kind).toBe('cancelled');
    expect(calls.flatMap((call) => membersOf(call.pid))).toEqual([]);
  });
});

describe('a process that cannot start', () => {
  test('says so by a value that names the program', async () => {
    const { request, folder } = await setUp();
    await writeFile(join(folder, 'plain'), 'text');
    await writeFile(join(folder, 'script'), '#!/no/such/interpreter\n');
    await chmod(join(folder, 'script'), 0o755);
    const reasonOf = async (argv: readonly [string, ...string[]], more?: Partial<ProcessRequest>): Promise<string> => {
      const { ended } = await runProcess(request(argv, more));
      return ended.kind === 'could-not-start' ? ended.reason : ended.kind;
    };
    expect(await reasonOf(['no-such-program'])).toBe('cannot start no-such-program: no such program on PATH');
    expect(await reasonOf(['./missing'])).toBe('cannot start ./missing: no such file');
    expect(await reasonOf(['./plain'])).toBe('cannot start ./plain: permission denied; is it an executable file?');
    expect(await reasonOf(['./script'])).toBe(
      'cannot start ./script: the interpreter its first line names is not there',
    );
    expect(await reasonOf(['true'], { cwd: '/no/such/folder' })).toBe(
      'cannot start true: the folder /no/such/folder is not there',
    );
    expect(await reasonOf(['true', 'x'.repeat(3_000_000)])).toBe(
      'cannot start true: its arguments and environment are longer than the system allows',
    );
    expect(await reasonOf(['true', 'a\0b'])).toBe('cannot start true: an argument holds a null byte');
    expect(await reasonOf(['true'], { logFile: '/proc/no/log' })).toContain(
      'cannot start true: cannot open its files: ',
    );
  });
});

const alone = `
import { systemClock } from './platform/clock.js';
import { endEveryProcess, runProcess } from './platform/process.js';
const start = (argv, signal = new AbortController().signal) => runProcess({
  argv, cwd: '/', env: { PATH: process.env.PATH }, logFile: new URL('log', import.meta.url).pathname,
  timeoutMs: 20_000, graceMs: 1_000, signal, clock: systemClock,
});
`;

describe('giro itself', () => {
  test('goes on when it has no file descriptor left to start one', async () => {
    const { run } = await program(`${alone}
import { closeSync, openSync } from 'node:fs';
const all = [];
try { for (;;) all.push(openSync('/dev/null')); } catch {}
const reasons = new Set();
for (let free = 0; free < 8; free += 1) {
  const { ended } = await start(['true']);
  reasons.add(ended.kind === 'could-not-start' ? ended.reason.replace(/open '.*'/, '') : ended.kind + ' ' + ended.code);
  closeSync(all.pop());
}
console.log([...reasons].join('\\n'));
`);
    const { code, stdout, stderr } = await run([], 'ulimit -n 128;');
    expect(stderr).toBe('');
    expect(stdout.trim().split('\n')).toEqual([
      'cannot start true: cannot open its files: EMFILE: too many open files, ',
      'cannot start true: too many open files',
      'exited 0',
    ]);
    expect(code).toBe(0);
  });

  test('takes every process with it when it crashes', async () => {
    const { run } = await program(`${alone}
import { readTail } from './platform/files.js';
process.on('exit', endEveryProcess);
void start(['sh', '-c', 'echo $$; trap "" TERM; sleep 300 & sleep 300']);
const log = new URL('log', import.meta.url).pathname;
for (;;) {
  await systemClock.sleep(5);
  const text = await readTail(log, 100);
  if (text.endsWith('\\n')) { console.log(text.trim()); throw new Error('a bug'); }
}
`);
    const { code, stdout, stderr } = await run();
    expect(stderr).toContain('a bug');
    expect(code).toBe(1);
    await emptied(Number(stdout));
  });

  test('says nothing when many processes wait for one signal', async () => {
    const { run } = await program(`${alone}
const stop = new AbortController();
const many = Array.from({ length: 15 }, () => start(['sleep', '300'], stop.signal));
many.push(...Array.from({ length: 15 }, () => systemClock.sleep(60_000, stop.signal)));
setImmediate(() => stop.abort('stop'));
await Promise.all(many);
`);
    expect(await run()).toEqual({ code: 0, stdout: '', stderr: '' });
  });

  test('ends as soon as its process has: no timer holds it', async () => {
    const { run } = await program(`${alone}
await start(['true']);
process.on('exit', () => console.log(process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length));
`);
    expect((await run()).stdout).toBe('0\n');
  });
});

describe('input and output', () => {
  test('five megabytes that nobody reads fail nothing', async () => {
    const { request } = await setUp();
    const { ended } = await runProcess(request(['sh', '-c', 'exit 7'], { input: 'x'.repeat(5_000_000) }));
    expect(ended).toEqual({ kind: 'exited', code: 7 });
  });

  test('all of the input arrives, then its end, and no copy of it stays', async () => {
    const { request, folder } = await setUp();
    const input = 'ä\n'.repeat(1_700_000);
    const outputFile = join(folder, 'out');
    expect((await runProcess(request(['cat'], { input, outputFile }))).ended).toEqual({ kind: 'exited', code: 0 });
    expect((await readFile(outputFile, 'utf8')) === input).toBe(true);
    expect(readdirSync(join(folder, 'logs'))).toEqual(['log']);
  });

  test('the input can be opened anew, as scripts do', async () => {
    const { request, log } = await setUp();
    await runProcess(request(['cat', '/dev/stdin'], { input: 'prompt' }));
    expect(await log()).toBe('prompt');
  });

  test('without an input stdin is at its end', async () => {
    const { request } = await setUp();
    expect((await runProcess(request(['cat']))).ended).toEqual({ kind: 'exited', code: 0 });
  });

  test('there is no terminal', async () => {
    const { request } = await setUp();
    const { ended } = await runProcess(request(['sh', '-c', 'test -t 0 || test -t 1 || : 2>/dev/null </dev/tty']));
    expect(ended.kind === 'exited' && ended.code !== 0).toBe(true);
  });

  test('stdout alone is replaced, the log is added to', async () => {
    const { request, log, folder } = await setUp();
    const outputFile = join(folder, 'out');
    const shout = (word: string): ProcessRequest =>
      request(['sh', '-c', `echo ${word}; echo ${word}! >&2`], { outputFile });
    await runProcess(shout('one'));
    await runProcess(shout('two'));
    expect(await readFile(outputFile, 'utf8')).toBe('two\n');
    expect(await log()).toBe('one!\ntwo!\n');
  });

  test('sixty megabytes of output leave memory as it was', async () => {
    const { request, folder } = await setUp();
    const before = process.memoryUsage().rss;
    const outputFile = join(folder, 'out');
    await runProcess(request(['head', '-c', '60000000', '/dev/zero'], { outputFile }));
    expect((await readFile(outputFile)).length).toBe(60_000_000);
    expect(process.memoryUsage().rss - before).toBeLessThan(90_000_000);
  });

  test('no timer, listener or file stays', async () => {
    const { request, clock, stop } = await setUp();
    await runProcess(request(['true']));
    const before = openDescriptors();
    const requests = [['true'], ['no-such-program'], ['cat']] as const;
    for (const argv of requests) await runProcess(request(argv, { input: 'text', watch: () => Promise.resolve(null) }));
    expect(clock.sleeping).toBe(0);
    expect(getEventListeners(stop.signal, 'abort')).toEqual([]);
    expect(openDescriptors()).toBe(before);
  });
});
