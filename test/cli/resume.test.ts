/** What a resume asks of git, on the Specs of the benchmark; and that those are as a real run leaves them. */
import { rm } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { spawnSync } from 'node:child_process';
import { onTestFinished, expect, test } from 'vitest';
import { halfDone, type HalfDone } from '../../bench/half-done.js';
import { openJournals, openSpec } from '../../src/cli/opening.js';
import { prepare } from '../../src/cli/prepare.js';
import { parseSpecSlug } from '../../src/issue.js';
import { commitMessage } from '../../src/store/trailers.js';
import { openGit } from '../../src/worktree/git.js';
import { FakeClock } from '../rig/clock.js';

const program = resolve(import.meta.dirname, '../../bin/giro.js');
const interposer = pathToFileURL(resolve(import.meta.dirname, '../crash/interposer.mjs')).href;
const environment = { PATH: process.env['PATH'] ?? '', HOME: '/nonexistent', GIT_CONFIG_GLOBAL: '/dev/null' };

function made(issues: number, packed = false): HalfDone {
  const project = halfDone({ issues, program, packed });
  onTestFinished(() => rm(project.folder, { recursive: true }));
  return project;
}

function git(repository: string, ...args: string[]): string {
  const { status, stdout, stderr } = spawnSync('git', ['-C', repository, ...args], { encoding: 'utf8' });
  if (status !== 0) throw new Error(stderr);
  return stdout;
}

/** Takes a Spec up as a run does, with so many Issues that were cut off; gives the processes of git that it took. */
async function processesToOpen(issues: number, cutOff: number): Promise<{ open: number; processes: number }> {
  const { repository, done } = made(issues);
  const opened = await openGit({ folder: repository, own: environment, runFolder: join(repository, '.git/giro/run') });
  if (!opened.ok) throw new Error('not opened');
  const tip = await opened.value.readRef('refs/heads/giro/many');
  if (tip === null) throw new Error('no tip');
  const { tree } = await opened.value.readCommit(tip);
  const width = String(issues).length;
  for (let number = done + 1; number <= done + cutOff; number += 1) {
    const name = `${String(number).padStart(width, '0')}-work`;
    const message = commitMessage({ subject: 'attempt 1', checkpoint: 'working', trailers: { 'Giro-Issue': name } });
    const commit = await opened.value.writeCommit({ tree, parents: [tip], message, at: number });
    await opened.value.moveRef(`refs/heads/giro-issue/many/${name}`, commit, null);
  }
  const before = opened.value.processes();
  const prepared = await prepare({
    ...{ git: opened.value, top: repository, spec: parseSpecSlug('many') ?? fail(), issue: null, named: true },
    ...{ at: '2030-01-01T00:00:00Z', own: environment, processors: 2 },
  });
  if (!prepared.ok) throw new Error('not prepared');
  const clock = new FakeClock();
  const facts = { git: opened.value, base: tip, spec: prepared.value.spec, giro: '0', now: () => 0, iso: () => '' };
  const ports = { git: opened.value, prepared: prepared.value, facts, baseBranch: null, clock, emit: () => undefined };
  const spec = await openSpec(ports);
  if (!spec.ok) throw new Error('not opened');
  const journals = await openJournals(ports, spec.value);
  const processes = opened.value.processes() - before;
  await opened.value.close();
  return { open: journals.size, processes };
}

function fail(): never {
  throw new Error('not a slug');
}

test('a resume asks git the same number of times however many Issues are done, and however many were cut off', async () => {
  const few = await processesToOpen(20, 1);
  const many = await processesToOpen(200, 20);
  expect([few.open, many.open]).toEqual([1, 20]);
  expect(many.processes).toBe(few.processes);
  expect(many.processes).toBeLessThanOrEqual(3);
});

/** What giro left of some Issues and of the Spec, without names of objects, times and durations. */
function shapeOf(repository: string, issues: readonly string[]): readonly string[] {
  const told = ['log', '--first-parent', '--format=%an %ae %cn %P%n%B'];
  const entries = (ref: string, ...paths: string[]): string =>
    git(repository, 'ls-tree', '-r', '-t', '--format=%(objectmode) %(path)', ref, ...paths);
  const stories = issues.map((issue) => {
    const [branch, path] = [`giro-issue/many/${issue}`, `docs/specs/many/issues/${issue}.md`];
    const steps = [2, 1, 0].map((back) => git(repository, 'show', `${branch}~${String(back)}:${path}`));
    const landed = git(repository, ...told, `--grep=^Giro-Issue: ${issue}$`, 'giro/many');
    const files = entries('giro/many', path, 'work')
      .split('\n')
      .filter((line) => line.includes(issue));
    const changes = git(repository, 'log', '-3', '--name-status', '--format=', '--first-parent', branch);
    const own = git(repository, ...told, '-3', branch);
    return [...steps, own, changes, landed, git(repository, 'show', `giro/many:${path}`), ...files].join('\n');
  });
  const first = git(repository, 'rev-list', '--first-parent', '--reverse', 'giro/many').split('\n')[1] ?? '';
  const asRead = git(repository, ...told, '-1', `${first}^2`) + entries(`${first}^2`);
  const spec = git(repository, 'show', 'giro/many:docs/specs/many/SPEC.md');
  return [...stories, git(repository, ...told, '-1', first), entries(first), asRead, spec].map((text) =>
    text
      .replace(/\b[0-9a-f]{40}\b/g, 'NAME')
      .replace(/\b(base|work|tree|onto|on) [0-9a-f]{7,8}\b/g, '$1 NAME')
      .replace(/\d{4}-\d\d-\d\dT[\d:]+Z/g, 'TIME')
      .replace(/ [\d.]+ m?s\b/g, ' AGO'),
  );
}

test('the Spec of the benchmark is as a real run leaves it that is killed when nine of ten Issues have landed', () => {
  const fixture = made(20);
  expect(git(fixture.repository, 'fsck', '--full', '--strict')).not.toMatch(/error|missing/);
  const real = made(20);
  const refs = git(real.repository, 'for-each-ref', '--format=%(refname)', 'refs/heads/giro*/**').trim().split('\n');
  for (const ref of refs) git(real.repository, 'update-ref', '-d', ref);
  const env = { ...environment, NODE_OPTIONS: `--import=${interposer}`, GIRO_KILL_AT: 'event issue.integrated#18' };
  const args = [program, 'implement', 'many', '--json', '-c', '1', '-C', real.repository];
  expect(spawnSync(process.execPath, args, { env }).signal).toBe('SIGKILL');
  const done = ({ repository }: HalfDone): readonly string[] =>
    git(repository, 'grep', '-l', '^state: done', 'giro/many').match(/\d+-work/g) ?? [];
  expect([done(fixture).length, done(real).length]).toEqual([18, 18]);
  // The first one lands as the very code that was judged, and is not verified again.
  const both = done(fixture).filter((issue) => issue !== '01-work' && done(real).includes(issue));
  expect(both.length).toBeGreaterThan(14);
  expect(shapeOf(fixture.repository, both)).toEqual(shapeOf(real.repository, both));
});

test('many objects are packed as git packs them', () => {
  const { repository } = made(70, true);
  expect(git(repository, 'count-objects', '-v')).toMatch(/^packs: 1$/m);
  expect(git(repository, 'fsck', '--full', '--strict', '--connectivity-only')).not.toMatch(/error|missing/);
  git(repository, 'verify-pack', '.git/objects/pack/pack-of-the-benchmark.idx');
});
