import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { GateVerdict, Lacking } from '../../src/gates/gate.js';
import { straysOf } from '../../src/platform/members.js';
import { findShell } from '../../src/gates/shell.js';
import { findingId, type Finding } from '../../src/issue.js';
import type { GateDefinition } from '../../src/policy.js';
import { temporaryFolder } from '../rig/temp.js';
import { FakeClock } from '../rig/clock.js';
import { StandIn } from '../rig/stand-in.js';
import { advanceUntil, bench, gate, type BenchOptions } from './bench.js';

/** Runs one gate and gives its verdict. */
async function judge(definition: GateDefinition | string, options: BenchOptions = {}): Promise<GateVerdict> {
  const at = await bench(options);
  const { gates } = await at.verifier.verify(
    at.request([typeof definition === 'string' ? gate('test', definition) : definition]),
  );
  const [only] = gates;
  if (only === undefined) throw new Error('no verdict');
  return only;
}

async function messageOf(definition: GateDefinition | string, options: BenchOptions = {}): Promise<string> {
  const { findings } = await judge(definition, options);
  return findings.map(({ message }) => message).join('; ');
}

describe('a gate', () => {
  test('passes by exit 0 alone', async () => {
    expect(await judge('echo FAILED; exit 0')).toMatchObject({ verdict: 'pass', cause: null, findings: [] });
    expect(await judge('echo all passed; exit 3')).toMatchObject({
      verdict: 'fail',
      cause: 'failed',
      findings: [{ message: 'gate test failed: exit 3', gate: 'test', detail: 'all passed' }],
    });
  });

  test('fails when any command of a pipe fails; a list and an or take the status of their last command', async () => {
    const verdicts: Record<string, string> = {};
    for (const run of [
      'false | tail -5',
      'false | tee out.log',
      'false; true',
      'false || echo failed',
      'true | false',
      'yes | head -1',
    ]) {
      verdicts[run] = (await judge(run)).verdict;
    }
    expect(verdicts).toEqual({
      'false | tail -5': 'fail',
      'false | tee out.log': 'fail',
      'false; true': 'pass',
      'false || echo failed': 'pass',
      'true | false': 'fail',
      'yes | head -1': 'fail',
    });
  });

  test('has no terminal, nothing to read, and a CI marker', async () => {
    const run = [
      'if [ -t 0 ] || [ -t 1 ] || [ -t 2 ]; then exit 11; fi',
      'if (: < /dev/tty) 2>/dev/null; then exit 12; fi',
      'if read -r answer; then exit 13; fi',
      '[ "$CI" = true ] || exit 14',
    ].join('\n');
    expect(await judge(run)).toMatchObject({ verdict: 'pass' });
  });

  test('sees the given environment with its slot, and nothing of giro’s own', async () => {
    const stands = await StandIn.open();
    onTestFinished(() => stands.close());
    const at = await bench();
    const verifying = at.verifier.verify(at.request([gate('test', stands.shellCommand('gate'))]));
    const call = await stands.nextInvocation('gate');
    expect(call.cwd).toBe(at.checkouts[0]);
    const { PATH, PWD, SHLVL, _, ...rest } = call.env;
    expect([PATH, PWD, SHLVL, _].length).toBe(4);
    expect(rest).toEqual({
      CI: 'true',
      GIRO_SPEC: 's1',
      GIRO_ISSUE: '01-store',
      GIRO_GATE: 'test',
      GIRO_SLOT: '1',
      GIRO_PORT_BASE: '20010',
      TMPDIR: join(at.folder, 'temporary-1'),
    });
    await call.exit(0);
    expect((await verifying).passed).toBe(true);
  });

  test('without an Issue has no GIRO_ISSUE', async () => {
    const at = await bench();
    const request = at.request([gate('test', '[ -z "${GIRO_ISSUE+set}" ]')], { issue: null, scope: 'spec' });
    expect((await at.verifier.verify(request)).passed).toBe(true);
  });

  test('gets its own variables from the port that knows them', async () => {
    const environment: BenchOptions['environment'] = (slot, { env }) => ({
      PATH: process.env['PATH'] ?? '',
      ...Object.fromEntries(env.map((name) => [name, `value ${String(slot.number)}`])),
      CI: 'overridden',
    });
    const definition = gate('test', '[ "$MY_URL" = "value 1" ] && [ "$CI" = true ]', { env: ['MY_URL'] });
    expect(await judge(definition, { environment })).toMatchObject({ verdict: 'pass' });
  });
});

describe('a gate that cannot run here', () => {
  test('names the program that is missing', async () => {
    expect(await judge('no-such-runner --run')).toMatchObject({ verdict: 'fail', cause: 'cannot-run-here' });
    expect(await messageOf('no-such-runner --run')).toBe(
      'gate test cannot run here: command not found: no-such-runner (exit 127)',
    );
    expect(await messageOf(`sh -c 'exec no-such-runner'`)).toContain('command not found: no-such-runner');
    expect(await messageOf('env no-such-runner')).toContain('command not found: no-such-runner');
    expect(await messageOf('./no/such.sh')).toContain('command not found: ./no/such.sh');
    expect(await messageOf('no-such-runner | tail -1')).toContain('command not found: no-such-runner');
  });

  test('is not one whose work under test calls a program that does not exist', async () => {
    const files = { 'new.sh': 'foo\n' };
    expect(await judge('bash new.sh', { files })).toMatchObject({ verdict: 'fail', cause: 'failed' });
    expect(await messageOf('exit 127')).toBe('gate test failed: exit 127');
  });

  test('names the file that cannot be executed', async () => {
    const message = await messageOf('./plain.sh', { files: { 'plain.sh': 'echo' } });
    expect(message).toBe('gate test cannot run here: command not executable: ./plain.sh (exit 126)');
  });

  test('says what the clean checkout lacks, and what to do', async () => {
    const names = ['node_modules', '.env'];
    const lacks = (): Promise<Lacking> => Promise.resolve({ names, install: 'pnpm install' });
    expect(await messageOf('no-such-runner', { lacks })).toBe(
      'gate test cannot run here: command not found: no-such-runner (exit 127); the clean checkout has no node_modules, .env: ' +
        'add [worktree] setup = "pnpm install", or list it under copy or link',
    );
    expect(await messageOf(`echo "Error: Cannot find module 'left-pad'"; exit 1`, { lacks })).toContain(
      'failed: exit 1; the clean checkout has no node_modules, .env',
    );
    expect(await messageOf('exit 127', { lacks })).toContain('the clean checkout has no node_modules, .env');
    expect(await messageOf('echo expected 1 to be 2; exit 1', { lacks })).toBe('gate test failed: exit 1');
    const nothing: Lacking = { names: [], install: null };
    expect(await messageOf('no-such-runner', { lacks: () => Promise.resolve(nothing) })).not.toContain(
      'clean checkout',
    );
  });

  test('a module that only an uncommitted file provides is shown in the finding', async () => {
    const files = { 'index.mjs': `import './gen.mjs';\n` };
    const { cause, findings } = await judge('node index.mjs', { files });
    expect(cause).toBe('failed');
    expect(findings[0]?.detail).toContain('gen.mjs');
  });

  test('without a shell that knows pipefail, nothing runs and nothing passes', async () => {
    const { path } = await temporaryFolder();
    const environment = (): { PATH: string } => ({ PATH: path });
    expect(await judge('true', { environment })).toMatchObject({
      verdict: 'fail',
      cause: 'errored',
      findings: [{ message: 'gate test could not start: no shell with pipefail found: install bash' }],
    });
    await mkdir(join(path, 'bin'));
    await writeFile(join(path, 'bin', 'bash'), '#!/bin/sh\nexit 0\n', { mode: 0o755 });
    expect(await findShell({ PATH: join(path, 'bin') })).toMatchObject({ ok: false });
  });
});

describe('a gate that does not end', () => {
  test('is ended whole at its limit and has timed out, not failed', async () => {
    const stands = await StandIn.open();
    onTestFinished(() => stands.close());
    const child = stands.shellCommand('child', { readsStdin: false });
    const clock = new FakeClock();
    const at = await bench({ clock });
    const run = `${child} & ${stands.shellCommand('stubborn', { readsStdin: false })}; wait`;
    const verifying = at.verifier.verify(
      at.request([gate('slow', run, { timeoutMs: 600_000 }), gate('next', 'true', { timeoutMs: 1e12 })]),
    );
    const [plain, stubborn] = [await stands.nextInvocation('child'), await stands.nextInvocation('stubborn')];
    await stubborn.ignore('SIGTERM');
    const { gates, passed } = await advanceUntil(clock, verifying);
    await Promise.all([plain.ended, stubborn.ended]);
    expect(passed).toBe(false);
    expect(gates).toMatchObject([
      { cause: 'timed-out', findings: [{ message: 'gate slow timed out after 10m' }] },
      { verdict: 'pass' },
    ]);
  });

  test('by itself is red when what it started is still at work, and that is ended too', async () => {
    const stands = await StandIn.open();
    onTestFinished(() => stands.close());
    const at = await bench();
    const run = `${stands.shellCommand('daemon', { readsStdin: false })} & ${stands.shellCommand('gate')}`;
    const verifying = at.verifier.verify(at.request([gate('test', run)]));
    const daemon = await stands.nextInvocation('daemon');
    await (await stands.nextInvocation('gate')).exit(0);
    expect((await verifying).gates).toMatchObject([{ cause: 'vacuous', ended: { kind: 'exited', code: 0 } }]);
    await daemon.ended;
  });

  test('killed by a foreign signal has errored', async () => {
    expect(await judge('kill -KILL $$')).toMatchObject({
      verdict: 'fail',
      cause: 'errored',
      findings: [{ message: 'gate test was killed by SIGKILL' }],
    });
  });
});

describe('very large output', () => {
  test('goes to the log whole, through no memory, and a bounded tail to the finding', { timeout: 60_000 }, async () => {
    const before = process.memoryUsage.rss();
    const [lines, line] = await Promise.all([
      judge(gate('lines', 'seq 1 7000000')),
      judge(gate('line', 'head -c 50000000 /dev/zero | tr "\\0" x; exit 1')),
    ]);
    expect(lines.verdict).toBe('pass');
    expect(line).toMatchObject({ verdict: 'fail', cause: 'failed' });
    expect(Buffer.byteLength(line.findings[0]?.detail ?? '')).toBe(6 * 1024);
    expect(process.memoryUsage.rss() - before).toBeLessThan(40_000_000);
  });

  test('keeps the last sixty lines, without terminal sequences', async () => {
    const { findings, log } = await judge(
      `for n in $(seq 1 100); do printf '\\033[32mline %s\\033[0m\\n' $n; done; exit 1`,
    );
    const lines = findings[0]?.detail?.split('\n') ?? [];
    expect([lines.length, lines[0], lines.at(-1)]).toEqual([60, 'line 41', 'line 100']);
    expect(await readFile(log ?? '', 'utf8')).toContain('\u001b[32mline 1\u001b');
  });
});

test.runIf(process.platform === 'linux')(
  'what left the group is ended, and its work unfinished is no pass',
  async () => {
    const at = await bench();
    const run = `setsid sleep 300 > /dev/null 2>&1 & echo "TMPDIR=$TMPDIR" > "$HOME/mark"; exit 0`;
    const home = await temporaryFolder();
    onTestFinished(() => home.remove());
    const { gates } = await at.verifier.verify(at.request([gate('test', run.replace('$HOME', home.path))]));
    expect(gates).toMatchObject([{ verdict: 'fail', cause: 'vacuous' }]);
    expect(gates[0]?.findings[0]?.message).toContain('still at work (sleep 300)');
    const mark = (await readFile(join(home.path, 'mark'), 'utf8')).trim();
    expect(straysOf([mark, 'GIRO_GATE=test'], null)).toEqual([]);
  },
);

describe('the finding of a gate that failed', () => {
  async function found(...lines: readonly string[]): Promise<Finding> {
    const { findings } = await judge(`printf '%s\\n' ${lines.map((line) => `"${line}"`).join(' ')}; exit 1`);
    const [finding] = findings;
    if (finding === undefined) throw new Error('no finding');
    return finding;
  }

  test('names the tests, and is another one when another test fails', async () => {
    const one = await found('TAP version 13', 'not ok 1 - adds', '1..1', '# 12 processes');
    const again = await found('TAP version 13', 'not ok 1 - adds', '1..1', '# 17 processes');
    const two = await found('TAP version 13', 'not ok 1 - adds', 'not ok 2 - moves', '1..2');
    expect(one.message).toBe('gate test failed: exit 1: adds');
    expect(two.message).toBe('gate test failed: exit 1: adds, moves');
    expect(findingId(again)).toBe(findingId(one));
    expect(findingId(two)).not.toBe(findingId(one));
  });

  test('without names is another one when the output is, whatever its order, times, lines and folders', async () => {
    const one = await found('$PWD/src/a/x.js', '  3:7 no-var', 'took 12 ms');
    expect(findingId(await found('took 1.5 s', 'src/a/x.js', ' 41:2 no-var'))).toBe(findingId(one));
    for (const others of [
      ['src/b/x.js', '3:7 no-var', 'took 12 ms'],
      ['src/a/x.js', '3:7 no-var', '4:1 no-eval', 'took 12 ms'],
    ])
      expect(findingId(await found(...others)), others.join()).not.toBe(findingId(one));
  });
});
