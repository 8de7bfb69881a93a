import { chmod, mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { createDriver } from '../../src/drivers/create.js';
import type { DriverRequest } from '../../src/drivers/driver.js';
import { workerContract, type WorkerOutcome } from '../../src/drivers/worker.js';
import { systemClock } from '../../src/platform/clock.js';
import { FakeClock } from '../rig/clock.js';
import { StandIn } from '../rig/stand-in.js';
import { stage, type Stage } from './request.js';

/** Typed, since vitest's own is `any`. */
function containing(text: string): unknown {
  return expect.stringContaining(text);
}

interface Agent {
  readonly env?: readonly string[];
  readonly own?: Readonly<Record<string, string>>;
  readonly clock?: FakeClock;
}

function run(at: Stage, argv: readonly [string, ...string[]], agent: Agent = {}): Promise<WorkerOutcome> {
  const driver = createDriver(
    { kind: 'command', name: 'agent', run: argv, env: agent.env ?? [], reports: { cost: false, tokens: false } },
    { clock: agent.clock ?? systemClock, repository: at.repository, own: agent.own ?? {} },
  );
  return driver.run(at.request, workerContract);
}

async function shell(script: string, change: Partial<DriverRequest> = {}): Promise<WorkerOutcome> {
  return run(await stage(change), ['sh', '-c', script]);
}

async function standIn(): Promise<StandIn> {
  const opened = await StandIn.open();
  onTestFinished(() => opened.close());
  return opened;
}

/** Moves time on until something has happened. */
async function advanceUntil<T>(clock: FakeClock, promise: Promise<T>): Promise<T> {
  const over = new AbortController();
  const settled = promise.finally(() => {
    over.abort();
  });
  settled.catch(() => undefined);
  while (!over.signal.aborted) await advanceSlowly(clock, 250);
  return settled;
}

/** Moves time on, letting each look of the watch read its files. */
async function advanceSlowly(clock: FakeClock, ms: number): Promise<void> {
  for (let passed = 0; passed < ms; passed += 250) {
    await clock.advance(250);
    await readFile('/dev/null');
  }
}

describe('what the agent is given', () => {
  test('the prompt comes by stdin to its end, exactly, whatever it looks like', async () => {
    for (const prompt of ['---\n- [ ] do it', '--help', '@file', '$(touch /tmp/x) `id`', 'ä\u0000\n\n', '']) {
      const at = await stage({ prompt });
      await run(at, ['sh', '-c', 'cat > got']);
      expect(await readFile(join(at.request.folder, 'got'), 'utf8')).toBe(prompt);
    }
  });

  test('arguments come as configured, in the worktree, with the given environment and nothing else', async () => {
    const stands = await standIn();
    const at = await stage();
    const running = run(at, [...stands.command('agent'), '-p', '$HOME', 'a b'], {
      env: ['MY_KEY'],
      own: { MY_KEY: 'k', OTHER: 'o', CLAUDECODE: '1', CLAUDE_CODE_ENTRYPOINT: 'cli', HOME: '/home/me' },
    });
    const call = await stands.nextInvocation('agent');
    expect(call.argv).toEqual(['-p', '$HOME', 'a b']);
    expect(call.cwd).toBe(at.request.folder);
    expect(call.env).toMatchObject({ MY_KEY: 'k', GIRO_ENVELOPE: at.request.envelopeFile, HOME: '/home/me' });
    expect(Object.keys(call.env).filter((name) => /CLAUDE|OTHER|NODE|npm|VITEST/.test(name))).toEqual([]);
    await call.exit(0);
    expect((await running).result).toEqual({ kind: 'finished', envelope: { status: 'done' } });
  });

  test('a relative program is the one of the user, not the one in the worktree', async () => {
    const at = await stage();
    await program(join(at.repository, 'tools', 'agent.sh'), '#!/bin/sh\necho user > which\n');
    await program(join(at.request.folder, 'tools', 'agent.sh'), '#!/bin/sh\necho worktree > which\n');
    await run(at, ['./tools/agent.sh']);
    expect(await readFile(join(at.request.folder, 'which'), 'utf8')).toBe('user\n');
  });
});

async function program(path: string, text: string, mode = 0o755): Promise<void> {
  await mkdir(join(path, '..'), { recursive: true });
  await writeFile(path, text);
  await chmod(path, mode);
}

describe('how it ended', () => {
  test('exit 0 without an envelope is done, whatever words were printed', async () => {
    const { result, ended } = await shell('echo "I will not output DONE. status: blocked. implementation complete"');
    expect(result).toEqual({ kind: 'finished', envelope: { status: 'done' } });
    expect(ended).toEqual({ kind: 'exited', code: 0 });
  });

  test('an envelope in the file goes before one in the output', async () => {
    const { result } = await shell(
      `echo '{"status":"blocked","question":"Which port?"}' > "$GIRO_ENVELOPE"; echo '{"status":"done"}'`,
    );
    expect(result).toEqual({ kind: 'finished', envelope: { status: 'blocked', question: 'Which port?' } });
  });

  test('without a file the last object of the output counts, on stdout or stderr', async () => {
    expect((await shell(`echo '{"status":"done"}'; echo '{"status":"blocked"}'; echo bye`)).result).toEqual({
      kind: 'finished',
      envelope: { status: 'blocked' },
    });
    expect((await shell(`echo '{"status":"done","summary":"s"}' >&2`)).result).toEqual({
      kind: 'finished',
      envelope: { status: 'done', summary: 's' },
    });
  });

  test('an invalid envelope with exit 0 is a failed attempt', async () => {
    for (const envelope of ['{"status":"ok"}', 'done', '{"status":"done"', '{"status":"done","summary":1}']) {
      const { result } = await shell(`printf '%s' '${envelope}' > "$GIRO_ENVELOPE"`);
      expect(result, envelope).toEqual({ kind: 'failed', reason: containing('envelope') });
    }
  });

  test('an envelope of an earlier call is not taken for this one', async () => {
    const at = await stage();
    await writeFile(at.request.envelopeFile, '{"status":"blocked"}');
    await writeFile(at.request.logFile, '{"status":"blocked"}\n');
    expect((await run(at, ['true'])).result).toEqual({ kind: 'finished', envelope: { status: 'done' } });
    expect(await readFile(at.request.logFile, 'utf8')).toContain('blocked');
  });

  test('a prompt that the agent echoes is not its answer', async () => {
    const prompt = `${'Work on this Issue. '.repeat(20)}\nEnd with:\n{"status":"blocked","question":"what you need"}\n`;
    expect((await shell('cat', { prompt })).result).toEqual({ kind: 'finished', envelope: { status: 'done' } });
    expect((await shell(`cat; echo '{"status":"done","summary":"own"}'`, { prompt })).result).toEqual({
      kind: 'finished',
      envelope: { status: 'done', summary: 'own' },
    });
  });

  test('any other exit is a failed attempt, with or without an envelope, also when nothing was read', async () => {
    expect((await shell('exit 7', { prompt: 'x'.repeat(5_000_000) })).result).toEqual({
      kind: 'failed',
      reason: 'agent exited 7',
    });
    expect((await shell(`echo '{"status":"done"}'; exit 1`)).result.kind).toBe('failed');
    expect((await shell('no-such-program-at-all')).result).toEqual({ kind: 'failed', reason: 'agent exited 127' });
  });

  test('exit 75 and the agreed object together are an operation; either alone is a failed attempt', async () => {
    const object = '{"status":"unavailable","reason":"usage-limit","until":"2030-01-02T03:04:05Z"}';
    expect((await shell(`echo '${object}' > "$GIRO_ENVELOPE"; exit 75`)).result).toEqual({
      kind: 'usage-limit',
      reason: 'agent is unavailable: usage-limit',
      until: '2030-01-02T03:04:05.000Z',
    });
    expect((await shell(`echo '{"status":"unavailable","reason":"auth"}'; exit 75`)).result).toEqual({
      kind: 'operation',
      reason: 'agent is unavailable: auth',
    });
    for (const script of [
      'exit 75',
      `echo '${object}'`,
      `echo '${object}'; exit 1`,
      `echo '{"status":"done"}'; exit 75`,
      `echo '{"status":"unavailable","reason":"bored"}'; exit 75`,
      'echo "usage limit reached, resets at 5pm"; exit 1',
    ]) {
      expect((await shell(script)).result.kind, script).toBe('failed');
    }
  });

  test('a program that cannot be started is an operation that names it', async () => {
    const at = await stage();
    await program(join(at.repository, 'plain.sh'), '#!/bin/sh\n', 0o644);
    await program(join(at.repository, 'odd.sh'), '#!/no/such/interpreter\n');
    for (const name of ['no-such-program-at-all', './missing.sh', './plain.sh', './odd.sh']) {
      const { result, ended } = await run(at, [name]);
      expect(ended.kind, name).toBe('could-not-start');
      expect(result, name).toMatchObject({
        kind: 'operation',
        reason: containing(name.replace('./', '')),
      });
    }
  });

  test('a signal that was not from giro is an operation', async () => {
    const { result } = await shell(`echo '{"status":"done"}'; kill -KILL $$`);
    expect(result).toEqual({ kind: 'operation', reason: 'agent was killed by SIGKILL' });
  });

  test('the time limit makes a failed attempt that says so', async () => {
    const { result, ended } = await shell('echo one; sleep 60', { timeoutMs: 1000 });
    expect(ended).toEqual({ kind: 'timed-out', limitMs: 1000 });
    expect(result).toEqual({ kind: 'failed', reason: 'agent timed out after 1s' });
  });

  test('a stop is no failure, even when an envelope is there', async () => {
    const stands = await standIn();
    const at = await stage();
    const running = run(at, stands.command('agent'));
    const call = await stands.nextInvocation('agent');
    await call.write({ [at.request.envelopeFile]: '{"status":"done"}' });
    at.stop.abort('stopped by giro stop');
    const { result, ended } = await running;
    expect(result).toEqual({ kind: 'stopped' });
    expect(ended).toEqual({ kind: 'cancelled', reason: 'stopped by giro stop' });
  });

  test('an error that the agent flags in its closing line is a failed attempt, although it exits 0', async () => {
    const line = '{"type":"result","subtype":"success","is_error":true,"api_error_status":429,"result":"slow down"}';
    expect((await shell(`echo '${line}'`)).result).toEqual({
      kind: 'failed',
      reason: 'agent reported an error 429: slow down',
    });
    expect((await shell(`echo '${line}'; exit 1`)).result).toEqual({
      kind: 'failed',
      reason: 'agent exited 1: error 429: slow down',
    });
  });

  test('denied tools are told in the summary, and the work still goes to the gates', async () => {
    const line = '{"type":"result","is_error":false,"permission_denials":[{"tool_name":"Write"}]}';
    expect((await shell(`echo '${line}'`)).result).toMatchObject({
      kind: 'finished',
      envelope: { status: 'done', summary: containing('denied Write') },
    });
  });

  test('the transcript has stdout and stderr in order, and the tail is safe to show', async () => {
    const at = await stage();
    const { tail, durationMs } = await run(at, ['sh', '-c', `echo one; echo two >&2; printf 'th\\033[31mree\\007\\n'`]);
    expect(await readFile(at.request.logFile, 'utf8')).toBe('one\ntwo\nth\u001b[31mree\u0007\n');
    expect(tail).toBe('one\ntwo\nthree\\u{7}');
    expect(durationMs).toBeGreaterThanOrEqual(0);
  });
});

describe('an agent that reports its result and never exits', () => {
  const patient = { timeoutMs: 1e9, graceMs: 5000 };

  test('is ended after the grace, and its envelope in the file counts', async () => {
    const [stands, clock, at] = [await standIn(), new FakeClock(), await stage(patient)];
    const running = run(at, stands.command('agent'), { clock });
    const call = await stands.nextInvocation('agent');
    await call.write({ [at.request.envelopeFile]: '{"status":"blocked","question":"q"}' });
    const { result, ended, durationMs } = await advanceUntil(clock, running);
    expect(result).toEqual({ kind: 'finished', envelope: { status: 'blocked', question: 'q' } });
    expect(ended.kind).toBe('stalled');
    expect(durationMs).toBeGreaterThanOrEqual(5000);
    await call.ended;
  });

  test('is ended after the grace, and its envelope at the end of the output counts', async () => {
    const [stands, clock, at] = [await standIn(), new FakeClock(), await stage(patient)];
    const running = run(at, stands.command('agent'), { clock });
    const call = await stands.nextInvocation('agent');
    await call.print('working\n{"status":"done","summary":"all of it"}\n');
    const { result } = await advanceUntil(clock, running);
    expect(result).toEqual({ kind: 'finished', envelope: { status: 'done', summary: 'all of it' } });
    await call.ended;
  });

  test('is ended after the grace also when its result is the closing line of its own format', async () => {
    const [stands, clock, at] = [await standIn(), new FakeClock(), await stage(patient)];
    const running = run(at, stands.command('agent'), { clock });
    const call = await stands.nextInvocation('agent');
    await call.print('{"type":"result","is_error":false,"result":"All done."}\n');
    const { result } = await advanceUntil(clock, running);
    expect(result).toEqual({ kind: 'finished', envelope: { status: 'done' } });
    await call.ended;
  });

  test('is not ended while it says nothing, half of it, or something else after it', async () => {
    const [stands, clock] = [await standIn(), new FakeClock()];
    const prompt = `${'Work on this Issue. '.repeat(20)}\nEnd with:\n{"status":"done"}\n`;
    const at = await stage({ ...patient, prompt });
    const running = run(at, stands.command('agent'), { clock });
    const call = await stands.nextInvocation('agent');
    for (const text of [prompt, 'thinking\n', '{"status":"done"', '} is not yet what I mean\n', '{"status":"ok"}\n']) {
      await call.print(text);
      await advanceSlowly(clock, 8000);
    }
    await call.write({ [at.request.envelopeFile]: '{"status":"do' });
    await advanceSlowly(clock, 8000);
    expect(call.isEnded).toBe(false);
    await call.write({ [at.request.envelopeFile]: '{"status":"done","summary":"now"}' });
    await call.exit(0);
    const { result, ended } = await running;
    expect(ended).toEqual({ kind: 'exited', code: 0 });
    expect(result).toEqual({ kind: 'finished', envelope: { status: 'done', summary: 'now' } });
  });
});
