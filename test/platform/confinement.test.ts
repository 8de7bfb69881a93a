import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { runGroupName } from '../../src/platform/cgroup-name.js';
import { findCgroups } from '../../src/platform/cgroups.js';
import { systemClock } from '../../src/platform/clock.js';
import { openConfinement, type ProcessLimits } from '../../src/platform/confinement.js';
import { formatMark, newMark, type RunMark } from '../../src/platform/mark.js';
import { lookForMarked } from '../../src/platform/marked.js';
import { runProcess, type ProcessRequest } from '../../src/platform/process.js';
import { endFound } from '../../src/platform/strays.js';
import { processLimits } from '../rig/policy.js';
import { temporaryFolder } from '../rig/temp.js';

const here = findCgroups();
const megabyte = 1024 ** 2;

/** Where giro may make cgroups of their own for its children, and can be told what the kernel did there. */
const isAllowed = openConfinement(newMark({ repository: 'r', spec: 's', run: 'probe' }), processLimits);
const probe = isAllowed.open({});
probe?.close();
isAllowed.close();
const hasMemory = here.kind !== 'none' && here.hierarchies.some(({ controllers }) => controllers.includes('memory'));

const env = { PATH: process.env['PATH'] ?? '' };

async function setUp(limits: Partial<ProcessLimits> = {}) {
  const folder = (await temporaryFolder()).path;
  const mark = newMark({ repository: 'r', spec: 's', run: 'confinement-test' });
  const confinement = openConfinement(mark, { ...processLimits, ...limits });
  onTestFinished(async () => {
    await endFound({ find: () => ofMark(mark), graceMs: 0, clock: systemClock });
    confinement.close();
    expect(groupsOf(mark)).toEqual([]);
  });
  const logFile = join(folder, 'log');
  const run = (
    argv: readonly [string, ...string[]],
    { stays = false, ...more }: Pick<Partial<ProcessRequest>, 'env' | 'input'> & { readonly stays?: boolean } = {},
  ) =>
    runProcess({
      ...{ argv, cwd: folder, env, logFile, timeoutMs: 60_000, graceMs: 200, clock: systemClock, confinement },
      ...{ signal: new AbortController().signal, ...more },
      // Nothing has it: what is found is found by its cgroup.
      ...(stays ? {} : { mark: [`NOBODY_HAS=${mark.nonce}`] }),
    });
  return { folder, mark, confinement, run, log: () => readFile(logFile, 'utf8') };
}

function ofMark({ nonce }: RunMark) {
  return lookForMarked({ isMeant: (one) => one.nonce === nonce, folders: [] }).marked;
}

/** The cgroups of a run that are there. */
function groupsOf(mark: RunMark): readonly string[] {
  if (here.kind === 'none') return [];
  const folders = here.hierarchies.map(({ folder }) => join(folder, runGroupName(mark)));
  return folders.filter((folder) => existsSync(folder));
}

describe.skipIf(probe === null)('a call in a cgroup of its own', () => {
  test('is in it from its first instruction, and its environment, folder, arguments and exit are what they are without', async () => {
    const { run, log, folder } = await setUp();
    const script = 'cat /proc/self/cgroup; env | sort; pwd; echo "$0/$1"; exit 7';
    const { ended } = await run(['bash', '-c', script, "a 'b'", '$(x)\n"'], { env: { ...env, GIRO_ROLE: 'worker' } });
    expect(ended).toEqual({ kind: 'exited', code: 7 });
    const said = await log();
    expect(said).toMatch(/\/giro,[^/]+\/1,GIRO_ROLE=worker\n/);
    const own = ['PWD', 'SHLVL', '_'];
    const variables = said.split('\n').filter((line) => /^\w+=/.test(line) && !own.includes(line.split('=')[0] ?? ''));
    expect(variables).toEqual(['GIRO_ROLE=worker', `PATH=${env.PATH}`]);
    expect(said.slice(said.lastIndexOf(folder))).toBe(`${folder}\na 'b'/$(x)\n"\n`);
  });

  test('has exactly the environment that it is given', async () => {
    const { run, log } = await setUp();
    await run(['/usr/bin/env'], { env: { A: '1' } });
    expect(await log()).toBe('A=1\n');
  });

  test('reads all of its input, and is ended by a signal as itself', async () => {
    const { run, log } = await setUp();
    const { ended, met } = await run(['sh', '-c', 'cat; kill -9 $$'], { input: 'the prompt\n' });
    expect([ended, met]).toEqual([{ kind: 'signalled', signal: 'SIGKILL' }, null]);
    expect(await log()).toBe('the prompt\n');
  });

  test('tells what is wrong with a program as ever', async () => {
    const { run, folder } = await setUp();
    expect((await run(['no-such-program'])).ended).toMatchObject({
      reason: expect.stringContaining('on PATH') as string,
    });
    await mkdir(join(folder, 'a'));
    expect((await run([join(folder, 'a')])).ended.kind).toBe('could-not-start');
  });

  test('cannot start more processes than its limit, and that is said', async () => {
    const { run, log, mark } = await setUp({ processes: 20 });
    // At most 40, whatever the limit does; each ends by itself.
    const script = `const { spawn } = require('node:child_process');
let started = 0, refused = 0;
for (let i = 0; i < 40; i += 1) {
  const child = spawn('/bin/sleep', ['5'], { stdio: 'ignore' });
  child.on('error', () => { refused += 1; });
  if (child.pid !== undefined) started += 1;
}
setImmediate(() => { console.log(started, refused); process.exit(3); });`;
    const { ended, met } = await run([process.execPath, '-e', script]);
    const [started = 0, refused = 0] = (await log()).trim().split(' ').map(Number);
    expect(ended).toEqual({ kind: 'exited', code: 3 });
    expect([started < 20, started + refused]).toEqual([true, 40]);
    expect(met).toBe('too many processes (limit 20)');
    expect(ofMark(mark)).toEqual([]);
  });

  test.skipIf(!hasMemory)('that wants more memory than its limit is ended, and that is said', async () => {
    const { run } = await setUp({ memoryBytes: 64 * megabyte });
    const { ended, met } = await run([
      'bash',
      '-c',
      `head -c ${String(200 * megabyte)} /dev/zero | tail; exit \${PIPESTATUS[1]}`,
    ]);
    expect(ended).toEqual({ kind: 'exited', code: 137 });
    expect(met).toBe('out of memory (limit 64 MB)');
  });

  test('meets no limit when it does not', async () => {
    const { run } = await setUp();
    expect(await run(['sh', '-c', 'exit 1'])).toMatchObject({ ended: { code: 1 }, met: null });
  });

  test('is ended with what cleared its environment and made a session of its own', async () => {
    const { run, folder, mark } = await setUp();
    const hidden =
      'env -i /usr/bin/setsid -f sh -c "echo \\$\\$ > hidden; exec sleep 30"; while [ ! -s hidden ]; do :; done';
    const { ended, left } = await run(['sh', '-c', hidden]);
    expect(ended).toEqual({ kind: 'exited', code: 0 });
    const pid = Number(readFileSync(join(folder, 'hidden'), 'utf8'));
    expect(left.map(({ command }) => command)).toEqual(['sleep 30']);
    expect(isRunning(pid)).toBe(false);
    expect(ofMark(mark)).toEqual([]);
  });

  test('that ignores SIGTERM and starts others goes as a whole', async () => {
    const { run, mark } = await setUp({ processes: 40 });
    // Starts others again and again, at most 200 in all.
    const restless = `trap '' TERM; i=0; while [ $i -lt 200 ]; do i=$((i+1)); sleep 0.05 & wait; done`;
    const hidden = `env -i setsid -f sh -c ${quoted(restless)}; exit 0`;
    expect((await run(['sh', '-c', hidden])).ended).toEqual({ kind: 'exited', code: 0 });
    expect(ofMark(mark)).toEqual([]);
  });

  test('leaves what set-up started running, and it is known by its cgroup what that is', async () => {
    const { run, mark, folder } = await setUp();
    const { ended } = await run(['sh', '-c', hiding('sleep 30')], { stays: true });
    const pid = Number(readFileSync(join(folder, 'hidden'), 'utf8'));
    expect([ended, isRunning(pid)]).toEqual([{ kind: 'exited', code: 0 }, true]);
    const found = ofMark(mark);
    expect(found).toMatchObject([{ pid }]);
    expect(found[0]?.given.get('GIRO_RUN')).toBe(formatMark(mark));
  });

  test('is known by its cgroup too when it has the mark of a giro that it started', async () => {
    const { run, mark } = await setUp();
    const inner = formatMark(newMark({ repository: 'r', spec: 's', run: 'inner' }));
    const script = `GIRO_RUN='${inner}' setsid -f sleep 30`;
    await run(['sh', '-c', script], { stays: true });
    expect(ofMark(mark)).toHaveLength(1);
  });

  test('is gone with its run', async () => {
    const { run, mark, confinement } = await setUp();
    await run(['true']);
    expect(groupsOf(mark)).not.toEqual([]);
    for (const group of groupsOf(mark)) expect(foldersIn(group)).toEqual([]);
    confinement.close();
    expect(groupsOf(mark)).toEqual([]);
  });
});

/** Starts something that has no environment and is in no session that is known, and waits until it has. */
function hiding(what: string): string {
  return `env -i /usr/bin/setsid -f sh -c 'echo $$ > hidden; exec ${what}'; while [ ! -s hidden ]; do :; done`;
}

function foldersIn(folder: string): readonly string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => (entry.isDirectory() ? [entry.name] : []));
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

function isRunning(pid: number): boolean {
  try {
    return !/^State:\s+[ZX]/m.test(readFileSync(`/proc/${String(pid)}/status`, 'utf8'));
  } catch {
    return false;
  }
}
