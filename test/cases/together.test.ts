/** Several giros in one repository at the same time. */
import { readdir, readFile, rm, stat, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { makeBarrier } from '../rig/fifo.js';
import { eventsOf, makeProject, unchangedBy, type GiroProcess, type GiroRun, type Project } from '../rig/giro.js';
import { scaled } from '../rig/scale.js';

/** Adds a second Spec to a project. */
async function addSpec(project: Project, spec: string, issues: Readonly<Record<string, string>>): Promise<void> {
  await project.write(`docs/specs/${spec}/SPEC.md`, '---\nstate: draft\n---\n# Another Spec\n\nWhat is wanted.\n');
  for (const [id, frontmatter] of Object.entries(issues))
    await project.write(
      `docs/specs/${spec}/issues/${id}.md`,
      `---\nstate: ready\n${frontmatter}---\n# ${id}\n\nDo it.\n`,
    );
}

const ids = Array.from({ length: 8 }, (_, at) => `0${String(at + 1)}-x`);

/** Agents wait until a barrier lets them go on. */
const waiting = ': < "$HOME/go"\necho "by $GIRO_ISSUE" > "$GIRO_ISSUE.txt"\n';
const barrier = (project: Project) => makeBarrier(join(project.home, 'go'));

/** Which of two runs went on, and how the other ended meanwhile. */
async function loserOf(runs: readonly [GiroProcess, GiroProcess]): Promise<{ winner: GiroProcess; lost: GiroRun }> {
  const [first, second] = runs;
  const at = await Promise.race([first.ended.then(() => 0), second.ended.then(() => 1)]);
  return at === 0 ? { winner: second, lost: await first.ended } : { winner: first, lost: await second.ended };
}

test('C069 one Spec started twice within 50 ms: one goes on, the other is refused at once with its name', async () => {
  const project = await makeProject({ issues: { '01-a': {} }, agent: waiting });
  for (let round = 0; round < scaled(3, 20); round += 1) {
    for (const ref of ['giro/s1', 'giro-issue/s1/01-a'])
      await project.git('update-ref', '-d', `refs/heads/${ref}`).catch(() => undefined);
    await rm(join(project.home, 'go'), { force: true });
    const go = await barrier(project);
    const start = (): GiroProcess => project.start(['implement', 's1', '--json']);
    const { winner, lost } = await loserOf([start(), start()]);
    expect([lost.code, lost.stdout]).toEqual([1, '']);
    expect(lost.stderr).toContain(`giro is already running on s1: process ${String(winner.pid)}`);
    expect(lost.stderr).toContain('giro stop s1');
    await go.open();
    expect((await winner.ended).code).toBe(0);
  }
});

test('C069 the same Spec from a linked worktree, and through a link, is refused too', async () => {
  const project = await makeProject({ issues: { '01-a': {} }, agent: waiting });
  await project.commit('the Spec');
  const linked = join(project.folder, 'linked');
  await project.git('worktree', 'add', '-q', '-b', 'other', linked);
  const alias = join(project.folder, 'alias');
  await symlink(project.path, alias);
  const go = await barrier(project);
  const running = project.start(['implement', 's1', '--json'], { cwd: linked });
  await running.event('attempt.started');
  for (const cwd of [project.path, alias, linked]) {
    const refused = await project.giro(['implement', 's1'], { cwd });
    expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining(`process ${String(running.pid)} `)]);
  }
  await go.open();
  expect((await running.ended).code).toBe(0);
  await project.git('worktree', 'remove', '--force', linked);
});

test('C069 two Specs at once, eight Issues each: both come to their end, and nothing fails on the way', async () => {
  const project = await makeProject({
    issues: Object.fromEntries(ids.map((id) => [id, {}])),
  });
  await addSpec(project, 's2', Object.fromEntries(ids.map((id) => [id, ''])));
  for (let round = 0; round < scaled(2, 20); round += 1) {
    const runs = await unchangedBy(project, () =>
      Promise.all(['s1', 's2'].map((spec) => project.giro(['implement', spec, '--json', '-c', '8']))),
    );
    for (const run of runs) {
      expect([run.code, run.stderr]).toEqual([0, '']);
      expect(eventsOf(run, 'run.notice').filter(({ level }) => level === 'warning')).toEqual([]);
      expect([eventsOf(run, 'issue.retrying'), eventsOf(run, 'issue.integrated').length]).toEqual([[], 8]);
    }
    for (const spec of ['s1', 's2']) {
      expect((await project.giro(['proof', spec])).code).toBe(0);
      const refs = await project.git('for-each-ref', '--format=%(refname)', 'refs/heads/giro', `refs/heads/giro-issue`);
      for (const ref of refs.split('\n').filter((name) => name.endsWith(`/${spec}`) || name.includes(`/${spec}/`)))
        await project.git('update-ref', '-d', ref);
    }
    expect((await project.git('worktree', 'list')).split('\n')).toHaveLength(1);
  }
});

/** Two Specs of which both want `src/`; the second has an Issue that wants nothing. */
async function contended(): Promise<Project> {
  const project = await makeProject({
    issues: { '01-a': { frontmatter: 'touches: ["src/**"]\nresources: [postgres]' } },
    agent: `if [ "$GIRO_SPEC" = s1 ]; then ${waiting.trimEnd().replace('\n', '; ')}; else echo x > "$GIRO_ISSUE.txt"; fi\n`,
  });
  await addSpec(project, 's2', { '01-b': 'touches: [src/db/x.ts]\n', '02-c': '', '03-d': 'resources: [postgres]\n' });
  return project;
}

/** What keeps Issues of s2 from starting, by their id. */
async function waitsOf(project: Project): Promise<object> {
  const shown = await project.giro(['status', 's2', '--json']);
  const { issues } = JSON.parse(shown.stdout) as { issues: { id: string; waitsForLease?: object }[] };
  return Object.fromEntries(issues.map(({ id, waitsForLease }) => [id, waitsForLease]));
}

const leasesOf = (project: Project) => readdir(join(project.path, '.git/giro/leases'));

test('an Issue waits for the lease of another Spec, says so, and starts when that is let go', async () => {
  const project = await contended();
  const go = await barrier(project);
  const s1 = project.start(['implement', 's1', '--json']);
  await s1.event('attempt.started');
  const lease = JSON.parse(await readFile(join(project.path, '.git/giro/leases/s1.01-a.json'), 'utf8')) as object;
  expect(lease).toMatchObject({
    format_version: 1,
    owner: { spec: 's1', issue: '01-a', pid: s1.pid },
    paths: ['src/**'],
    resources: ['postgres'],
    status: 'held',
  });
  const s2 = project.start(['implement', 's2', '--json']);
  await s2.event('issue.integrated', ({ issue }) => issue === '02-c');
  const holder = { spec: 's1', issue: '01-a' };
  expect((await s2.event('lease.refused', ({ issue }) => issue === '01-b')).holder).toEqual({
    ...holder,
    what: 'src/**',
  });
  await s2.event('lease.refused', ({ issue }) => issue === '03-d');
  expect(await waitsOf(project)).toEqual({
    '01-b': { ...holder, what: 'src/**' },
    '02-c': undefined,
    '03-d': { ...holder, what: 'postgres' },
  });
  const shown = await project.giro(['status', 's2']);
  expect(shown.stdout).toContain('waits for s1/01-a, which has src/**');
  expect(await leasesOf(project)).toEqual(['s1.01-a.json']);

  await go.open();
  const [first, second] = [await s1.ended, await s2.ended];
  expect([first.code, second.code, second.stderr]).toEqual([0, 0, '']);
  const at = (run: GiroRun, type: 'issue.integrated' | 'attempt.started', id: string): string =>
    eventsOf(run, type).find(({ issue }) => issue === id)?.at ?? '';
  for (const id of ['01-b', '03-d'])
    expect(at(first, 'issue.integrated', '01-a') <= at(second, 'attempt.started', id)).toBe(true);
  expect(eventsOf(second, 'lease.freed').map(({ issue }) => issue)).toEqual(['01-b', '03-d']);
  expect(await leasesOf(project)).toEqual([]);
});

test('the lease of a giro that was killed is free when nothing that it left runs any more', async () => {
  const project = await contended();
  await barrier(project);
  const s1 = project.start(['implement', 's1', '--json']);
  await s1.event('attempt.started');
  const s2 = project.start(['implement', 's2', '--json']);
  await s2.event('lease.refused');
  s1.kill('SIGKILL');
  await s1.ended;
  expect(await waitsOf(project)).toMatchObject({ '01-b': { spec: 's1' } });
  expect((await project.giro(['stop', 's1'])).code).toBe(0);
  const run = await s2.ended;
  expect([run.code, run.stderr, await leasesOf(project)]).toEqual([0, '', []]);
});

test('a run that waits for the lease of another is stopped like any other, and says what it waited for', async () => {
  const project = await contended();
  const go = await barrier(project);
  const s1 = project.start(['implement', 's1', '--json']);
  await s1.event('attempt.started');
  const s2 = project.start(['implement', 's2', '--json']);
  await s2.event('issue.integrated');
  await s2.event('lease.refused', ({ issue }) => issue === '03-d');
  s2.kill('SIGTERM');
  const stopped = await s2.ended;
  expect(stopped.signal ?? stopped.code).toBe('SIGTERM');
  expect(eventsOf(stopped, 'run.finished')[0]?.lines.join('\n')).toContain(
    'not started  01-b: waits for s1/01-a, which has src/**',
  );
  await go.open();
  await s1.ended;
  expect((await project.giro(['implement', 's2'])).code).toBe(0);
});

test('commands that only read take no lock and no lease', async () => {
  const project = await makeProject({ issues: { '01-a': { frontmatter: 'touches: ["src/**"]' } } });
  expect((await project.implement()).code).toBe(0);
  const folders = ['locks', 'short-lock', 'leases'].map((name) => join(project.path, '.git/giro', name));
  // A file that comes and goes changes the time of its folder.
  const times = () => Promise.all(folders.map(async (folder) => (await stat(folder, { bigint: true })).mtimeNs));
  const before = await times();
  const commands = [
    ['status'],
    ['status', 's1', '--json'],
    ['proof', 's1'],
    ['implement', 's1', '--dry-run'],
    ['implement', 'docs/specs', '--dry-run'],
    ['implement', 's1'],
    ['clean', '--dry-run'],
    ['clean', 's1', '--json'],
    ['clean', '--salvage'],
    ['stop'],
    ['stop', 's1'],
  ];
  for (const command of commands) {
    const run = await project.giro(command);
    expect([command, run.code, run.stderr]).toEqual([command, 0, '']);
    expect([command, await times()]).toEqual([command, before]);
  }
});

test('Specs of one backlog hold resources against each other, and paths do not', async () => {
  const project = await makeProject({
    issues: { '01-a': { frontmatter: 'touches: ["src/**"]' }, '02-b': { frontmatter: 'resources: [postgres]' } },
    agent: waiting,
  });
  await addSpec(project, 's2', { '01-a': 'touches: ["src/**"]\n', '02-b': 'resources: [postgres]\n' });
  const go = await barrier(project);
  const night = project.start(['implement', 'docs/specs', '--json', '-c', '8']);
  for (const spec of ['s1', 's2'])
    await night.event('attempt.started', (event) => event.spec === spec && event.issue === '01-a');
  const refused = await night.event('lease.refused');
  expect([refused.issue, refused.holder.issue, refused.holder.what]).toEqual(['02-b', '02-b', 'postgres']);
  await go.open();
  const run = await night.ended;
  expect([run.code, run.stderr]).toEqual([0, '']);
  const at = (type: string, spec: string): number =>
    run.events.findIndex(
      (event) => event.type === type && event.spec === spec && 'issue' in event && event.issue === '02-b',
    );
  expect(at('attempt.started', refused.spec ?? '')).toBeGreaterThan(at('issue.integrated', refused.holder.spec));
  expect(await leasesOf(project)).toEqual([]);
});
