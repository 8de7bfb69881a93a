import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { describe, expect, onTestFinished, test } from 'vitest';
import { isAlive, ownIdentity, parseIdentity, parseProcessStat } from '../../src/platform/identity.js';
import { program } from './program.js';

describe('a process', () => {
  test('knows itself as alive', () => {
    const own = ownIdentity();
    expect(own.pid).toBe(process.pid);
    expect(ownIdentity()).toEqual(own);
    expect(isAlive(own)).toBe('alive');
  });

  test('is alive for others until it has ended', async () => {
    const child = (await program(identify)).start();
    onTestFinished(() => void child.kill('SIGKILL'));
    const [line] = (await once(child.stdout!, 'data')) as [Buffer];
    const identity = JSON.parse(line.toString()) as ReturnType<typeof ownIdentity>;
    expect(isAlive(identity)).toBe('alive');
    child.kill('SIGSTOP');
    expect(isAlive(identity)).toBe('alive');
    child.kill('SIGKILL');
    await once(child, 'exit');
    expect(isAlive(identity)).toBe('dead');
  });

  test('is dead as a zombie', async () => {
    // A shell that becomes a program that never reaps; its child ends when the input does, and stays as a zombie.
    const parent = spawn('sh', ['-c', 'exec 3<&0; cat <&3 >/dev/null & echo $!; exec sleep 300'], {
      stdio: ['pipe', 'pipe', 'ignore'],
    });
    onTestFinished(() => void parent.kill('SIGKILL'));
    const [line] = (await once(parent.stdout, 'data')) as [Buffer];
    const pid = Number(line.toString());
    const stat = (): ReturnType<typeof parseProcessStat> =>
      parseProcessStat(readFileSync(`/proc/${String(pid)}/stat`, 'latin1'));
    await until(() => readFileSync(`/proc/${String(parent.pid)}/comm`, 'utf8') === 'sleep\n');
    parent.stdin.end();
    await until(() => stat().state === 'Z');
    expect(isAlive({ ...ownIdentity(), pid, startTime: stat().startTime })).toBe('dead');
  });

  test('is dead when its number was given to another one, or after a restart of the machine', () => {
    const own = ownIdentity();
    expect(isAlive({ ...own, startTime: '1' })).toBe('dead');
    expect(isAlive({ ...own, pid: 2 ** 22 + 1 })).toBe('dead');
    expect(isAlive({ ...own, bootId: 'another' })).toBe('dead');
  });

  test('is unknown on another host, in another pid namespace, or where the system does not tell', () => {
    const own = ownIdentity();
    expect(isAlive({ ...own, host: 'another', bootId: 'another' })).toBe('unknown');
    expect(isAlive({ ...own, pidNamespace: 'pid:[1]', pid: 2 ** 22 + 1 })).toBe('unknown');
    expect(isAlive({ ...own, bootId: '' })).toBe('unknown');
    expect(isAlive({ ...own, startTime: '' })).toBe('unknown');
  });
});

test('a stat line is read behind the name, whatever that is', () => {
  const rest = 'S 1 77 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4242 20 21';
  for (const name of ['sh', 'a b', ') R 1 2', 'x) Z 9 9 (', 'new\nline', '((']) {
    const stat = { state: 'S', parent: 1, group: 77, session: 3, startTime: '4242' };
    expect(parseProcessStat(`12 (${name}) ${rest}\n`)).toEqual(stat);
  }
  expect(() => parseProcessStat('12 (sh) S')).toThrow('not a stat line');
});

async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await new Promise((resolve) => setImmediate(resolve));
}

const identify = `
import { ownIdentity } from './platform/identity.js';
console.log(JSON.stringify(ownIdentity()));
setInterval(() => undefined, 1000);
`;

test('an identity is read back with what else stands there; everything else is none', () => {
  const own = { ...ownIdentity(), run: 'r1' };
  expect(parseIdentity(JSON.stringify(own))).toEqual(own);
  for (const text of [
    '',
    'null',
    '[]',
    '7',
    '{',
    JSON.stringify({ ...own, pid: '7' }),
    JSON.stringify({ ...own, host: null }),
  ]) {
    expect(parseIdentity(text), text).toBeNull();
  }
});
