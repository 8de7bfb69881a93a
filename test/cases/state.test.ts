import { spawn } from 'node:child_process';
import { readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { ownIdentity } from '../../src/platform/identity.js';
import { makeBarrier, makeBell } from '../rig/fifo.js';
import { eventsOf, makeProject, type Project } from '../rig/giro.js';

const damages: Readonly<Record<string, (bytes: Buffer) => Buffer>> = {
  'cut to half': (bytes) => bytes.subarray(0, Math.floor(bytes.length / 2)),
  'cut to nothing': () => Buffer.alloc(0),
  'all NUL': (bytes) => Buffer.alloc(bytes.length),
};

test.each(Object.entries(damages))(
  'C066 every file that giro keeps is %s: what is done stays done',
  async (_name, damage) => {
    const project = await makeProject({
      issues: { '01-a': {}, '02-b': { frontmatter: 'depends-on: [01]' }, '03-c': { frontmatter: 'depends-on: [01]' } },
      budget: 'attempts = 2',
      agent: `echo "$GIRO_ISSUE" >> "$HOME/agents"; echo "$GIRO_ISSUE" > "$HOME/bell"
if [ "$GIRO_ISSUE" = 03-c ] && [ ! -f "$HOME/go" ]; then sleep 60; fi
echo x > "$GIRO_ISSUE.txt"\n`,
      verify: `test = '! test -f 02-b.txt'`,
    });
    const bell = await makeBell(join(project.home, 'bell'));
    const running = project.start(['implement', 's1', '--json']);
    await running.event('issue.escalated', ({ issue }) => issue === '02-b');
    await running.event('attempt.started', ({ issue }) => issue === '03-c');
    await bell.rung(4);
    running.kill('SIGKILL');
    await running.ended;
    await writeFile(join(project.home, 'go'), '');
    const kept = await stateFiles(project);
    expect(kept.length).toBeGreaterThan(3);
    for (const path of kept) await writeFile(path, damage(await readFile(path)));

    // Whose lock cannot be read is nobody's to take; the command that is given is safe, and enough.
    const refused = await project.implement();
    expect(refused.code).toBe(1);
    const lock = join(project.path, '.git/giro/locks/s1.json');
    expect(refused.stderr).toContain(`rm '${lock}'`);
    await rm(lock);

    const run = await project.implement();
    expect([run.code, run.stderr]).toEqual([2, '']);
    expect(eventsOf(run, 'attempt.started').map(({ issue }) => issue)).toEqual(['03-c']);
    expect(await project.issueFile('01-a')).toContain('state: done');
    expect(await project.issueFile('02-b')).toContain('state: needs-human');
    const agents = (await readFile(join(project.home, 'agents'), 'utf8')).trimEnd().split('\n').sort();
    expect(agents).toEqual(['01-a', '02-b', '02-b', '03-c', '03-c']);
  },
);

test('C070 a lock of a process that is gone is taken over, and nobody who has its number now is signalled', async () => {
  const project = await makeProject({ issues: { '01-a': {} } });
  const other = spawn('sleep', ['60']);
  onTestFinished(() => void other.kill('SIGKILL'));
  const lock = { format_version: 1, ...ownIdentity(), spec: 's1', run: 'r', at: '2026-01-01T00:00:00.000Z' };
  const path = join(project.path, '.git/giro/locks/s1.json');
  const owners = [{ pid: other.pid ?? 0, startTime: '1' }, { pid: 1, startTime: '1' }, { pid: 2 ** 22 + 1 }];
  for (const owner of owners) {
    await project.write('.git/giro/locks/s1.json', JSON.stringify({ ...lock, ...owner }));
    // A Spec that is proven already takes no lock.
    await project.git('update-ref', '-d', 'refs/heads/giro/s1');
    const run = await project.implement();
    expect([owner.pid, run.code, run.stderr]).toEqual([owner.pid, 0, '']);
  }
  for (const text of ['', '{"format_version": 1, "pi', JSON.stringify({ ...lock, host: 'an old name', bootId: 'b' })]) {
    await project.write('.git/giro/locks/s1.json', text);
    await project.git('update-ref', '-d', 'refs/heads/giro/s1');
    const run = await project.implement();
    expect([text, run.code]).toEqual([text, 1]);
    expect(run.stderr).toContain(`rm '${path}'`);
    expect(await readFile(path, 'utf8')).toBe(text);
    await rm(path);
    expect((await project.implement()).code).toBe(0);
  }
  expect([other.exitCode, other.signalCode]).toEqual([null, null]);
});

test('C070 what a dead giro left of its short lock and its leases keeps nobody', async () => {
  const project = await makeProject({ issues: { '01-a': { frontmatter: 'touches: ["src/**"]' } } });
  const dead = { ...ownIdentity(), startTime: '1' };
  const times = { acquired_at: '2026-01-01T00:00:00.000Z', expires_at: '2999-01-01T00:00:00.000Z' };
  const owner = { spec: 's9', issue: '01-z', run: 'r', ...dead };
  const lease = { format_version: 1, owner, paths: ['src/**'], resources: [], ...times, status: 'held' };
  await project.write('.git/giro/leases/s9.01-z.json', JSON.stringify(lease));
  await project.write('.git/giro/leases/s8.01-y.json', '{"format_ver');
  await project.write('.git/giro/short-lock/owner.json', JSON.stringify({ ...dead, hold: 'x' }));
  const run = await project.implement();
  expect([run.code, run.stderr]).toEqual([0, '']);
  const notices = eventsOf(run, 'run.notice').filter(({ level }) => level === 'warning');
  const unread = join(project.path, '.git/giro/leases/s8.01-y.json');
  expect(notices.map(({ message }) => message)).toEqual([
    `a lease that cannot be read is not heeded: ${unread} (rm '${unread}')`,
  ]);
  expect(await readdir(join(project.path, '.git/giro/leases'))).toEqual(['s8.01-y.json']);
  expect(await readdir(join(project.path, '.git/giro/short-lock'))).toEqual([]);
});

test('C070 a lock that a live giro has is not taken, whoever asks, and names it', async () => {
  const project = await makeProject({
    issues: { '01-a': {} },
    agent: ': < "$HOME/go"\necho x > a.txt\n',
  });
  const go = await makeBarrier(join(project.home, 'go'));
  const running = project.start(['implement', 's1', '--json']);
  await running.event('attempt.started');
  const path = join(project.path, '.git/giro/locks/s1.json');
  const text = await readFile(path, 'utf8');
  const refused = await project.giro(['implement', 's1']);
  expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining(`process ${String(running.pid)} `)]);
  const cleaned = await project.giro(['clean', 's1', '--yes']);
  expect(`${cleaned.stdout}${cleaned.stderr}`).toContain(`process ${String(running.pid)} `);
  expect(await readFile(path, 'utf8')).toBe(text);
  await go.open();
  expect((await running.ended).code).toBe(0);
});

/** Everything that giro wrote for itself: beside the repository and beside the worktrees. */
async function stateFiles(project: Project): Promise<readonly string[]> {
  const roots = [join(project.path, '.git/giro'), join(project.environment['XDG_CACHE_HOME'] ?? '', 'giro')];
  const found: string[] = [];
  for (const root of roots)
    for (const entry of await readdir(root, { recursive: true, withFileTypes: true }))
      if (entry.isFile() && /\.(json|ndjson)$|\/verdicts\//.test(join(entry.parentPath, entry.name)))
        found.push(join(entry.parentPath, entry.name));
  return found;
}
