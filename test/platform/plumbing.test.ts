import { randomBytes } from 'node:crypto';
import { describe, expect, onTestFinished, test } from 'vitest';
import { runPlumbing, startConversation } from '../../src/platform/plumbing.js';
import type { Conversation } from '../../src/platform/plumbing.js';
import { isAlive, ownIdentity } from '../../src/platform/identity.js';
import { program } from './program.js';

const place = { env: { PATH: process.env['PATH'] ?? '', MARK: 'yes' }, cwd: '/' };
const sh = (line: string): { file: string; args: string[]; env: Record<string, string>; cwd: string } => ({
  file: '/bin/sh',
  args: ['-c', line],
  ...place,
});

describe('a plumbing command', () => {
  test('gives its code, its bytes and its words as data', async () => {
    const result = await runPlumbing(sh("printf '\\377\\000'; echo no >&2; exit 3"));
    expect(result).toEqual({ code: 3, signal: null, stdout: Buffer.from([255, 0]), stderr: 'no\n' });
  });

  test('gets the given environment and folder only', async () => {
    const { stdout } = await runPlumbing({ file: '/usr/bin/env', args: [], ...place });
    expect(stdout.toString().trim().split('\n').sort()).toEqual(['MARK=yes', `PATH=${place.env.PATH}`]);
    expect((await runPlumbing(sh('pwd'))).stdout.toString()).toBe('/\n');
  });

  test('gets its input, then the end of it; without one the end at once', async () => {
    const input = randomBytes(5_000_000);
    expect((await runPlumbing({ ...sh('cat'), input })).stdout.equals(input)).toBe(true);
    expect((await runPlumbing(sh('cat'))).stdout.length).toBe(0);
  });

  test('may end without reading five megabytes', async () => {
    expect((await runPlumbing({ ...sh('exit 4'), input: 'x'.repeat(5_000_000) })).code).toBe(4);
  });

  test('says by which signal it ended', async () => {
    expect(await runPlumbing(sh('kill -9 $$'))).toMatchObject({ code: null, signal: 'SIGKILL' });
  });

  test('is cut and ended at a limit, not at exactly that much', async () => {
    const cut = await runPlumbing({ ...sh('sleep 300 & echo $!; yes'), maxBytes: 100_000 });
    expect(cut).toMatchObject({ code: null, signal: 'SIGKILL' });
    expect(cut.stdout.length).toBe(100_000);
    const left = { ...ownIdentity(), pid: Number.parseInt(cut.stdout.toString(), 10), startTime: '' };
    // The kernel ends a killed process when it next runs.
    await expect.poll(() => isAlive(left)).toBe('dead');
    const whole = await runPlumbing({ ...sh('printf 12345'), maxBytes: 5 });
    expect(whole).toMatchObject({ code: 0, stdout: Buffer.from('12345') });
  });

  test('is ended when its time is up, with what it started', async () => {
    const late = await runPlumbing({ ...sh('sleep 300 & echo $!; echo slow >&2; wait'), timeoutMs: 300 });
    expect(late).toMatchObject({ code: null, signal: 'SIGKILL', stderr: 'slow\nno end within 0 s' });
    const left = { ...ownIdentity(), pid: Number(late.stdout.toString()), startTime: '' };
    await expect.poll(() => isAlive(left)).toBe('dead');
    expect(await runPlumbing({ ...sh('exit 3'), timeoutMs: 60_000 })).toMatchObject({ code: 3, stderr: '' });
  });

  test('that cannot start is a value that names it', async () => {
    const missing = await runPlumbing({ file: '/no/git', args: [], ...place });
    expect(missing).toMatchObject({ code: null, signal: null });
    expect(missing.stderr).toContain('cannot start /no/git: ');
    const long = await runPlumbing({ file: '/bin/true', args: ['x'.repeat(3_000_000)], ...place });
    expect(long.stderr).toMatch(/cannot start \/bin\/true: .*E2BIG/);
  });

  test('is not waited for beyond its end when a daemon holds its output open', async () => {
    const { code, stdout } = await runPlumbing(sh('setsid sleep 30 & echo $!; exit 0'));
    expect(code).toBe(0);
    process.kill(Number(stdout.toString()), 'SIGKILL');
  });

  test('has a session of its own, which a Ctrl+C in the terminal does not reach', async () => {
    const { stdout } = await runPlumbing(sh('cut -d" " -f5,6 /proc/self/stat; echo $$'));
    const [groups, pid] = stdout.toString().trim().split('\n');
    expect(groups).toBe(`${String(pid)} ${String(pid)}`);
  });
});

describe('a conversation', () => {
  function start(line: string): Conversation {
    const conversation = startConversation(sh(line));
    onTestFinished(() => conversation.close());
    return conversation;
  }

  test('answers lines and bytes in the order they were asked', async () => {
    const echo = start('cat');
    const reads = [echo.readLine(), echo.readBytes(3), echo.readLine(), echo.readBytes(0), echo.readLine()];
    echo.write('one\nab');
    echo.write(Uint8Array.of(0xff));
    echo.write('tail\n\n');
    expect(await Promise.all(reads)).toEqual(['one', Buffer.from([0x61, 0x62, 0xff]), 'tail', Buffer.alloc(0), '']);
  });

  test('answers all that comes before a mark, also over many chunks, and then goes on', async () => {
    const echo = start('cat');
    const read = echo.readUntil(Buffer.from('-end\n'));
    const bytes = randomBytes(200_000);
    echo.write('a-en');
    echo.write(bytes);
    echo.write('-e');
    echo.write('nd\n');
    expect(await read).toEqual(Buffer.concat([Buffer.from('a-en'), bytes]));
    const more = [echo.readUntil(Buffer.from('.')), echo.readUntil(Buffer.from('.'))];
    echo.write('.');
    expect((await more[0])?.length).toBe(0);
    await echo.close();
    expect(await more[1]).toBeNull();
  });

  test('gives large bytes whole', async () => {
    const echo = start('cat');
    const bytes = randomBytes(5_000_000);
    const read = echo.readBytes(bytes.length);
    echo.write(bytes);
    expect((await read).equals(bytes)).toBe(true);
  });

  test('gives a line that comes in many pieces', async () => {
    const echo = start('cat');
    const line = 'ä'.repeat(500_000);
    const read = echo.readLine();
    echo.write(line);
    echo.write('\nnext\n');
    expect((await read) === line).toBe(true);
    expect(await echo.readLine()).toBe('next');
  });

  test('whose child dies answers every read that waits or comes later, and swallows writes', async () => {
    const child = start('read -r line; echo "got $line"; echo broken >&2; exit 5');
    const reads = [child.readLine(), child.readLine()];
    const bytes = expect(child.readBytes(4)).rejects.toThrow(/exit code 5.*\n.*broken/);
    child.write('x\n');
    expect(await Promise.all(reads)).toEqual(['got x', null]);
    await bytes;
    child.write('y'.repeat(5_000_000));
    expect(await child.readLine()).toBeNull();
    await expect(child.readBytes(1)).rejects.toThrow('exit code 5');
    expect(child.stderrTail()).toBe('broken\n');
  });

  test('gives what was said without a line end before the end', async () => {
    const child = start('printf half');
    expect(await child.readLine()).toBe('half');
    expect(await child.readLine()).toBeNull();
  });

  test('whose child is killed says by what', async () => {
    const child = start('kill -9 $$');
    await expect(child.readBytes(1)).rejects.toThrow('was ended by SIGKILL');
  });

  test('that cannot start is one whose child has died', async () => {
    const child = startConversation({ file: '/no/git', args: ['cat-file'], ...place });
    child.write('x');
    expect(await child.readLine()).toBeNull();
    await expect(child.readBytes(1)).rejects.toThrow('/no/git cat-file did not start (cannot start /no/git: ');
    await child.close();
  });

  test('closes a child that waits for more, and kills one that does not end', async () => {
    const polite = startConversation(sh('cat'));
    await polite.close();
    await polite.close();
    const stubborn = startConversation(sh('trap "" TERM; while :; do sleep 30; done'));
    await stubborn.close();
    expect(await stubborn.readLine()).toBeNull();
  });

  test('that is forgotten does not keep giro alive; one that is waited for does', async () => {
    const { run } = await program(`
import { startConversation } from './platform/plumbing.js';
const line = process.argv[2];
const conversation = startConversation({ file: '/bin/sh', args: ['-c', line], env: process.env, cwd: '/' });
conversation.write('hello\\n');
console.log(await conversation.readLine());
`);
    expect(await run(['cat'])).toEqual({ code: 0, stdout: 'hello\n', stderr: '' });
    expect(await run(['sleep 0.3; echo late; exec cat'])).toEqual({ code: 0, stdout: 'late\n', stderr: '' });
  });
});
