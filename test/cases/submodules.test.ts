import { existsSync } from 'node:fs';
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { cleaned, killedAt, saidOf, worktreeOf } from '../rig/clean.js';
import { makeBell } from '../rig/fifo.js';
import { eventsOf, makeProject, unchangedBy, type GiroRun, type Project, type ProjectSetup } from '../rig/giro.js';

const fill = 'git submodule --quiet update --init 2> "$HOME/refused"';
const commitInside = 'echo more >> lib/lib.txt; git -C lib commit -qam inside';

/** A project with the submodule `lib`, and a person whose git may clone it from a folder. */
async function withSubmodule(setup: Partial<ProjectSetup>): Promise<Project> {
  const project = await makeProject({ issues: { '01-a': {} }, budget: 'attempts = 1', ...setup });
  await writeFile(
    join(project.home, '.gitconfig'),
    '[protocol "file"]\n\tallow = always\n[user]\n\tname = Somebody\n\temail = somebody@localhost\n',
  );
  const library = join(project.folder, 'library');
  await project.git('init', '-q', '-b', 'main', library);
  await writeFile(join(library, 'lib.txt'), 'lib\n');
  await project.git('-C', library, 'add', '-A');
  await project.git('-C', library, 'commit', '-qm', 'the library');
  await project.git('submodule', '--quiet', 'add', library, 'lib');
  await project.commit('a submodule');
  return project;
}

const noticesOf = (run: GiroRun): string =>
  eventsOf(run, 'run.notice')
    .map(({ message }) => message)
    .join('\n');

async function addToPolicy(project: Project, text: string): Promise<void> {
  await project.write('giro.toml', `${await readFile(join(project.path, 'giro.toml'), 'utf8')}${text}\n`);
}

/** The pointer of `lib` at a ref. */
const pointer = (project: Project, ref: string): Promise<string> => project.git('rev-parse', `${ref}:lib`);

test('C077 agents may fill a submodule: clean worktrees go, one with a commit inside stays, and the commit is never lost', async () => {
  const project = await withSubmodule({
    issues: { '01-a': {}, '02-b': {} },
    agent: [
      fill,
      'if [ "$GIRO_ISSUE" = 01-a ]; then cp lib/lib.txt read.txt; exit 0; fi',
      `if [ "$GIRO_ATTEMPT" = 1 ]; then ${commitInside}; fi`,
      'echo b > b.txt',
    ].join('\n'),
  });
  const first = await project.implement();
  expect(first.code, first.stdout).toBe(2);
  expect(await project.show('giro/s1', 'read.txt')).toBe('lib');
  const findings = eventsOf(first, 'attempt.judged').flatMap((event) => event.findings);
  expect(findings).toMatchObject([{ rule: 'submodule', file: 'lib' }]);
  await expect(worktreeOf(project, '01-a')).rejects.toThrow('no worktree');
  const folder = await worktreeOf(project, '02-b');
  const inside = await project.git('-C', join(folder, 'lib'), 'rev-parse', 'HEAD');

  const cleanedUp = await cleaned(project, '--yes', '--save');
  expect(saidOf(cleanedUp, 'worktree', '02-b')).toEqual(['keep: needs-human: the next run goes on from it']);
  expect(await project.git('-C', join(folder, 'lib'), 'log', '-1', '--format=%s', inside)).toBe('inside');

  const second = await unchangedBy(project, () => project.implement());
  expect(second.code, second.stdout).toBe(0);
  const moved = /it was moved, with its repository, to (\S+)/.exec(noticesOf(second))?.[1] ?? '';
  expect(await project.git('-C', moved, 'log', '--format=%s')).toBe('inside\nthe library');
  expect(await project.git('-C', moved, 'status', '--porcelain')).toBe('');
  expect(await readFile(join(moved, 'lib.txt'), 'utf8')).toBe('lib\nmore\n');
  expect(await pointer(project, 'giro/s1')).toBe(await pointer(project, 'main'));
  // What was moved is for a person.
  const after = await cleaned(project, '--yes', '--save');
  expect(after.items.filter(({ name, fate }) => fate === 'keep' && moved.startsWith(name))).toHaveLength(1);
  expect(existsSync(moved)).toBe(true);
  expect(await project.git('worktree', 'list')).not.toContain('/w');
});

test('C077 the start says that submodules are empty, with the line that fills them for agents and gates; changes in them are found and saved', async () => {
  const project = await withSubmodule({
    agent:
      'if [ "$GIRO_ATTEMPT" = 1 ]; then echo more >> lib/lib.txt; echo new > lib/new.txt; fi\ncp lib/lib.txt a.txt\n',
    verify: 'test = "test -f lib/lib.txt && git status --porcelain && test -z \\"$(git status --porcelain)\\""',
  });
  const empty = await project.implement();
  expect(empty.code).toBe(2);
  const line = /(copy = .*) in \[worktree\] of giro\.toml/.exec(noticesOf(empty))?.[1];
  expect(line).toBe('copy = ["lib"]');
  // The agent wrote into the empty folder, where git sees nothing: that is not taken for nothing.
  expect(JSON.stringify(eventsOf(empty, 'attempt.judged'))).toContain('lib/new.txt');
  await project.git('update-ref', '-d', 'refs/heads/giro/s1');
  await cleaned(project, '--yes', '--save');
  expect(await project.git('worktree', 'list')).toContain('/w');

  await addToPolicy(project, `[worktree]\n${line ?? ''}`);
  await project.writeIssue('02-b', {});
  const changed = await project.implement();
  expect(noticesOf(changed)).not.toContain('submodule lib will be');
  expect(eventsOf(changed, 'attempt.judged').map(({ verdict }) => verdict)).toEqual(['fail', 'fail']);
  const again = await project.implement();
  expect(again.code, again.stdout).toBe(0);
  // What is in the library is as it was, for the agent and for the gate.
  expect(await project.show('giro/s1', 'a.txt')).toBe('lib');
  const refs = (await project.git('for-each-ref', '--format=%(refname)', 'refs/giro/salvage/')).split('\n');
  const saved = await Promise.all(refs.map((ref) => project.show(ref, 'lib/new.txt')));
  expect(saved.filter((text) => text === 'new').length).toBeGreaterThanOrEqual(2);
  const texts = await Promise.all(refs.map((ref) => project.show(ref, 'lib/lib.txt')));
  expect(texts).toContain('lib\nmore');
  expect(await project.git('fsck', '--no-dangling')).toBe('');
});

test('C077 a set-up may fill them too', async () => {
  const project = await withSubmodule({
    toml: '[worktree]\nsetup = "git submodule update --init"\n',
    agent: 'cp lib/lib.txt "$GIRO_ISSUE.txt"; git status --porcelain > "$HOME/status"\n',
    issues: { '01-a': {}, '02-b': { frontmatter: 'depends-on: [01]' } },
    verify: 'test = "test -f lib/lib.txt && test -z \\"$(git status --porcelain)\\""',
  });
  const run = await unchangedBy(project, () => project.implement());
  expect(run.code, run.stdout).toBe(0);
  expect(noticesOf(run)).not.toContain('will be empty');
  expect(await project.show('giro/s1', '02-b.txt')).toBe('lib');
  expect(await readFile(join(project.home, 'status'), 'utf8')).toBe('?? 02-b.txt\n');
  expect(await pointer(project, 'giro/s1')).toBe(await pointer(project, 'main'));
  expect(await project.git('worktree', 'list')).not.toContain('/w');
});

test('C077 after a kill the pointer is still there, and what is made in a worktree by hand too', async () => {
  const project = await withSubmodule({
    agent:
      'if [ "$GIRO_ATTEMPT" = 1 ]; then echo half > a.txt; echo here > "$HOME/ready"; exec sleep 60; fi\ncat a.txt > b.txt || echo b > b.txt\n',
    budget: 'attempts = 2',
    verify: 'test = "test -f by-hand.txt"',
  });
  const bell = await makeBell(join(project.home, 'ready'));
  const running = project.start(['implement', 's1', '--json']);
  await bell.rung(1);
  running.kill('SIGKILL');
  await running.ended;
  const resumed = await project.implement();
  expect(resumed.code).toBe(2);
  expect(await project.show('refs/giro/salvage/s1/01-a/1', 'a.txt')).toBe('half');
  expect(await pointer(project, 'refs/giro/salvage/s1/01-a/1')).toBe(await pointer(project, 'main'));
  await writeFile(join(await worktreeOf(project, '01-a'), 'by-hand.txt'), 'by hand\n');
  const mended = await project.implement();
  expect(mended.code, mended.stdout).toBe(0);
  expect(eventsOf(mended, 'attempt.started')).toEqual([]);
  expect(await project.show('giro/s1', 'by-hand.txt')).toBe('by hand');
  expect(await pointer(project, 'giro/s1')).toBe(await pointer(project, 'main'));
});

test('C077 a submodule whose folder an agent removes is a finding, not a change that lands', async () => {
  const project = await withSubmodule({ agent: 'rm -r lib; echo a > a.txt\n' });
  const run = await project.implement();
  expect(run.code).toBe(2);
  const [judged] = eventsOf(run, 'attempt.judged');
  expect(judged?.findings).toMatchObject([{ rule: 'submodule', file: 'lib' }]);
  expect(await pointer(project, 'giro/s1')).toBe(await pointer(project, 'main'));
});

test('C077 commits of a submodule that the agent took out of its folder again are kept', async () => {
  const project = await withSubmodule({
    agent: `if [ "$GIRO_ATTEMPT" = 1 ]; then ${fill}; ${commitInside}; rm -rf lib; mkdir lib; fi\necho "$GIRO_ATTEMPT" > a.txt\n`,
    verify: 'test = "test \\"$(cat a.txt)\\" = 2"',
  });
  expect((await project.implement()).code).toBe(2);
  const again = await project.implement();
  expect(again.code, again.stdout).toBe(0);
  const kept = /are kept in (\S+)/.exec(noticesOf(again))?.[1] ?? '';
  expect(await project.git('--git-dir', kept, 'log', '-1', '--format=%s')).toBe('inside');
});

test('C077 giro clean removes the worktree of a killed run when its submodule is clean, and keeps one with a commit inside', async () => {
  const project = await withSubmodule({ agent: `${fill}\necho a > a.txt\n` });
  await project.start(['implement', 's1', '--json'], { env: killedAt('event issue.integrated#1') }).ended;
  const folder = await worktreeOf(project, '01-a');
  expect(existsSync(join(folder, 'lib', 'lib.txt'))).toBe(true);
  const git = (...args: readonly string[]): Promise<string> => project.git('-C', join(folder, 'lib'), ...args);
  await writeFile(join(folder, 'lib', 'lib.txt'), 'mended\n');
  const why = 'integrated in giro/s1, but commits or changes that are nowhere else are in its submodule lib';
  expect(saidOf(await cleaned(project, '--yes', '--save'), 'worktree')).toEqual([`keep: ${why}`]);
  await git('commit', '-qam', 'mended');
  expect(saidOf(await cleaned(project, '--yes', '--save'), 'worktree')).toEqual([`keep: ${why}`]);
  expect(await git('log', '-1', '--format=%s')).toBe('mended');
  await git('push', '-q', 'origin', 'HEAD:refs/heads/mended');
  await git('checkout', '-q', '--detach', 'HEAD~1');
  const done = await cleaned(project, '--yes');
  expect(done.items.filter(({ kind, removed }) => kind === 'worktree' && removed)).toHaveLength(1);
  expect(existsSync(folder)).toBe(false);
});

test('C077 a folder of the submodule that is copied is only as good as the checkout: what it is not is said', async () => {
  const project = await withSubmodule({ toml: '[worktree]\ncopy = ["lib"]\n', agent: 'ls lib > a.txt\n' });
  const library = join(project.path, 'lib');
  await project.git('-C', library, 'commit', '-q', '--allow-empty', '-m', 'further');
  expect(noticesOf(await project.implement('--dry-run'))).toBe('');
  const run = await project.implement();
  expect(noticesOf(run)).toMatch(/the submodule lib of your checkout is at [0-9a-f]{7}, the base has [0-9a-f]{7}/);
  await project.git('submodule', '--quiet', 'deinit', '-f', 'lib');
  await rm(library, { recursive: true });
  await mkdir(library);
  await project.writeIssue('02-b', {});
  expect(noticesOf(await project.implement())).toContain('the submodule lib is empty in your checkout');
});
