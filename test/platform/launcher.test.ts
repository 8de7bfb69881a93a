import { mkdir, realpath } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { isAlive, ownIdentity } from '../../src/platform/identity.js';
import { createLauncher, type Launcher } from '../../src/platform/launcher.js';
import type { PlumbingRun } from '../../src/platform/plumbing.js';
import { temporaryFolder } from '../rig/temp.js';
import { program } from './program.js';

const base = { PATH: process.env['PATH'] ?? '', BASE: 'yes' };

const sh = (line: string, ...words: string[]): PlumbingRun => ({
  file: '/bin/sh',
  args: ['-c', line, ...words],
  env: base,
  cwd: '/',
});

function launcher(): Launcher {
  const made = createLauncher(base);
  onTestFinished(() => made.close());
  return made;
}

function isDead(pid: number): boolean {
  return isAlive({ ...ownIdentity(), pid, startTime: '' }) === 'dead';
}

describe('a launched command', () => {
  test('gives its code, its bytes and its words as data', async () => {
    const result = await launcher().run(sh("printf '\\377\\000'; echo no >&2; exit 3"));
    expect(result).toEqual({ code: 3, signal: null, stdout: Buffer.from([255, 0]), stderr: 'no\n' });
  });

  test.each(['', '\n', 'no line end', 'two\n\n', '\n0000-1 0\n', '\0'.repeat(70)])(
    'says exactly %j, and the next one its own',
    async (text) => {
      const { run } = launched();
      const { stdout } = await run(sh(`printf %s "$1" | tr x '\\0'`, 'sh', text.replaceAll('\0', 'x')));
      expect(stdout.toString()).toBe(text);
      expect((await run(sh('echo next'))).stdout.toString()).toBe('next\n');
    },
  );

  const odd = ["'", "''", '"', '$(touch x)', '`id`', '\\', '\n', '; exit 7', '# no', '*', '~', '-n', 'ü €', ' ', ''];

  test.each(odd)('gets the word %j as it is, as an argument, a variable and a folder', async (word) => {
    const { path } = await temporaryFolder();
    const cwd = join(await realpath(path), `in${word}`);
    await mkdir(cwd, { recursive: true });
    const request = { ...sh('printf "%s\\0%s\\0%s" "$1" "$ODD" "$(pwd; echo x)"', 'sh', word), cwd };
    const { stdout } = await launcher().run({ ...request, env: { ...base, ODD: word } });
    expect(stdout.toString()).toBe(`${word}\0${word}\0${cwd}\nx`);
  });

  test('gets the given environment and an empty input, and leaves nothing of it to the next', async () => {
    const { run } = launched();
    const first = await run({ ...sh('echo "$BASE $MORE"; cat'), env: { ...base, BASE: 'other', MORE: 'more' } });
    expect(first.stdout.toString()).toBe('other more\n');
    expect((await run({ ...sh('echo "$BASE $MORE"; pwd'), cwd: '/usr' })).stdout.toString()).toBe('yes \n/usr\n');
    expect((await run(sh('pwd'))).stdout.toString()).toBe('/\n');
  });

  test('gets what a shell cannot give: an input, an environment with less, odd names of variables', async () => {
    const { run } = launched();
    expect((await run({ ...sh('cat'), input: 'in' })).stdout.toString()).toBe('in');
    const env = { PATH: base.PATH, 'A.B': 'dot' };
    const { stdout } = await run({ file: '/usr/bin/env', args: [], env, cwd: '/' });
    expect(stdout.toString().trim().split('\n').sort()).toEqual(['A.B=dot', `PATH=${base.PATH}`]);
  });

  test('gives five megabytes whole, and keeps the start of much too many words on stderr', async () => {
    const { stdout, stderr } = await launcher().run(
      sh('head -c 5000000 /dev/zero | tr "\\0" x; yes | head -c 100000 >&2'),
    );
    expect(stdout.equals(Buffer.alloc(5_000_000, 'x'))).toBe(true);
    expect(stderr).toBe('y\n'.repeat(32_768));
  });

  test('that cannot be found, or whose folder is not there, says so', async () => {
    const { run } = launched();
    expect(await run({ ...sh(''), file: '/no/git' })).toMatchObject({ code: 127 });
    const lost = await run({ ...sh('echo ran'), cwd: '/no' });
    expect(lost.code).toBe(2);
    expect(lost.stdout.toString()).toBe('');
  });

  test('that was ended by a signal says by which; the codes that git has are codes', async () => {
    const { run } = launched();
    expect(await run(sh('kill -9 $$'))).toMatchObject({ code: null, signal: 'SIGKILL' });
    expect(await run(sh('kill -11 $$'))).toMatchObject({ code: null, signal: 'SIGSEGV' });
    for (const code of [1, 128, 129])
      expect(await run(sh(`exit ${String(code)}`))).toMatchObject({ code, signal: null });
  });

  test('is cut and ended at a limit, not at exactly that much', async () => {
    const { run } = launched();
    const cut = await run({ ...sh('sleep 300 & echo $!; yes'), maxBytes: 100_000 });
    expect(cut).toMatchObject({ code: null, signal: 'SIGKILL' });
    expect(cut.stdout.length).toBe(100_000);
    const pid = Number.parseInt(cut.stdout.toString(), 10);
    await expect.poll(() => isDead(pid)).toBe(true);
    expect(await run({ ...sh('printf 12345'), maxBytes: 5 })).toMatchObject({ code: 0, stdout: Buffer.from('12345') });
    expect(await run({ ...sh('printf 12345'), maxBytes: 1 })).toMatchObject({ code: null, stdout: Buffer.from('1') });
    expect((await run(sh('echo next'))).stdout.toString()).toBe('next\n');
  });

  test('is ended when its time is up, with what it started', async () => {
    const { run } = launched();
    const late = await run({ ...sh('sleep 300 & echo $!; echo slow >&2; wait'), timeoutMs: 300 });
    expect(late).toMatchObject({ code: null, signal: 'SIGKILL', stderr: 'slow\nno end within 0 s' });
    const pid = Number(late.stdout.toString());
    await expect.poll(() => isDead(pid)).toBe(true);
    expect((await run(sh('echo next'))).stdout.toString()).toBe('next\n');
  });

  test('whose shell is ended from outside is an end by signal, and the next gets another shell', async () => {
    const { run } = launched();
    const killed = await run(sh('echo said; kill -9 $PPID; sleep 300'));
    expect(killed).toMatchObject({ code: null, signal: 'SIGKILL' });
    expect((await run(sh('echo next'))).stdout.toString()).toBe('next\n');
  });
});

test('a hundred at once each get their own answer, and shells are used again', async () => {
  const { run } = launched();
  const pids = new Set<string>();
  const answers = await Promise.all(
    Array.from({ length: 100 }, async (_, at) => {
      const [answer, pid] = (await run(sh('echo "$1"; echo $PPID', 'sh', String(at)))).stdout.toString().split('\n');
      pids.add(pid ?? '');
      return answer;
    }),
  );
  expect(answers).toEqual(Array.from({ length: 100 }, (_, at) => String(at)));
  expect(pids.size).toBeLessThanOrEqual(32);
});

test('closing waits for what still runs and ends the shells', async () => {
  const made = createLauncher(base);
  const { stdout } = await made.run(sh('echo $PPID'));
  const running = made.run(sh('sleep 0.2; echo done'));
  await made.close();
  expect((await running).stdout.toString()).toBe('done\n');
  await expect.poll(() => isDead(Number(stdout.toString()))).toBe(true);
});

test('a launcher that is forgotten keeps no program from exiting, a command that is waited for does', async () => {
  const { run } = await program(`
    import { createLauncher } from './platform/launcher.js';
    const env = { PATH: process.env.PATH };
    const launcher = createLauncher(env);
    const { stdout } = await launcher.run({ file: '/bin/sh', args: ['-c', 'sleep 0.2; echo waited'], env, cwd: '/' });
    console.log(stdout.toString().trim());
  `);
  expect(await run()).toMatchObject({ code: 0, stdout: 'waited\n' });
});

function launched(): { readonly run: Launcher['run'] } {
  const made = launcher();
  return { run: (request) => made.run(request) };
}
