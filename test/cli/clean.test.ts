/** `giro clean` on the built program: what goes, what stays, and that nothing is lost on the way. */
import { existsSync } from 'node:fs';
import { mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { occupantsOf } from '../../src/platform/occupants.js';
import { asking, cleaned, killedAfterIntegration, killedAt, roomOf, saidOf, worktreeOf } from '../rig/clean.js';
import { makeProject, unchangedBy, type Project } from '../rig/giro.js';

const integrated = 'integrated in giro/s1';

async function refs(project: Project, prefix: string): Promise<readonly string[]> {
  return (await project.git('for-each-ref', '--format=%(refname)', prefix)).split('\n').filter((name) => name !== '');
}

/** Content of a file in what was saved. */
async function saved(project: Project, path: string): Promise<readonly (string | null)[]> {
  const names = await refs(project, 'refs/giro/salvage/');
  return Promise.all(names.map((ref) => project.show(ref, path)));
}

describe('what is integrated', () => {
  test('goes: worktree, branch and checkouts, with what set-up and tools made; the Spec stays proved', async () => {
    const project = await killedAfterIntegration();
    const folder = await worktreeOf(project, '01-a');
    await mkdir(join(folder, 'node_modules/x'), { recursive: true });
    await writeFile(join(folder, 'node_modules/x/big'), Buffer.alloc(300_000));

    const shown = await unchangedBy(project, () => cleaned(project));
    expect(shown.removed).toBe(0);
    expect(saidOf(shown, 'worktree')).toEqual([`remove: ${integrated}, and all of its files are in commits that stay`]);
    expect(saidOf(shown, 'branch', '01-a')).toEqual([`remove: ${integrated}, and every commit of it is in giro/s1`]);
    const [worktree] = shown.items.filter(({ kind }) => kind === 'worktree');
    expect(worktree?.ignored).toEqual([{ path: 'node_modules', bytes: expect.any(Number) as number, kind: 'again' }]);
    expect(worktree?.bytes).toBeGreaterThan(300_000);
    expect(existsSync(folder)).toBe(true);

    const done = await unchangedBy(project, () => cleaned(project, '--yes'));
    expect(done.notices).toEqual([]);
    expect(existsSync(folder)).toBe(false);
    expect(await refs(project, 'refs/heads/giro-issue')).toEqual([]);
    expect(await refs(project, 'refs/giro')).toEqual([]);
    expect(await readdir(await roomOf(project))).toEqual(['owner.json']);
    expect((await cleaned(project)).items.filter(({ fate }) => fate === 'remove')).toEqual([]);
    expect((await project.implement()).code).toBe(0);
    expect(await project.show('giro/s1', '01-a.txt')).toBe('by 01-a');
  });

  test('stays where a person mended files by hand; with --save they are saved first, and said', async () => {
    const project = await killedAfterIntegration();
    const folder = await worktreeOf(project, '01-a');
    await writeFile(join(folder, '01-a.txt'), 'mended by hand\n');

    const kept = await cleaned(project, '--yes');
    expect(saidOf(kept, 'worktree')).toEqual([`keep: ${integrated}, but no commit has its 01-a.txt`]);
    expect(await readFile(join(folder, '01-a.txt'), 'utf8')).toBe('mended by hand\n');

    const done = await cleaned(project, '--yes', '--save');
    expect(existsSync(folder)).toBe(false);
    expect(done.notices).toEqual([
      '01-a: files in its worktree that no commit has are kept as refs/giro/salvage/s1/01-a/1',
    ]);
    expect(await saved(project, '01-a.txt')).toEqual(['mended by hand']);
  });

  test('stays where somebody committed in the worktree and took it out of the files again; with --save it is saved', async () => {
    const project = await killedAfterIntegration();
    const folder = await worktreeOf(project, '01-a');
    const git = (...args: readonly string[]): Promise<string> => project.git('-C', folder, ...args);
    await writeFile(join(folder, 'idea.txt'), 'an idea\n');
    await git('add', '-A');
    await git('commit', '-qm', 'an idea');
    await git('reset', '-q', '--hard', 'HEAD~1');

    expect(saidOf(await cleaned(project, '--yes'), 'worktree')).toEqual([
      `keep: ${integrated}, but no branch has what was committed in it (an idea)`,
    ]);
    await cleaned(project, '--yes', '--save');
    expect(existsSync(folder)).toBe(false);
    expect(await saved(project, 'idea.txt')).toEqual(['an idea']);
  });

  test('ignored files that no tool fills are saved before; too many of them keep the worktree', async () => {
    const project = await killedAfterIntegration();
    const folder = await worktreeOf(project, '01-a');
    await writeFile(join(folder, 'env.local'), 'KEY=1\n');
    const big = join(folder, 'big.local');
    await writeFile(big, Buffer.alloc(17 * 1024 * 1024));

    expect(saidOf(await cleaned(project, '--yes', '--save'), 'worktree')).toEqual([
      `keep: ${integrated}, but ignored files in it are nowhere else and too much to save: big.local, env.local`,
    ]);
    await rm(big);
    const done = await cleaned(project, '--yes');
    expect(done.notices).toEqual(['01-a: ignored files of its worktree are kept as refs/giro/salvage/s1/01-a/1']);
    expect(existsSync(folder)).toBe(false);
    expect(await saved(project, 'env.local')).toEqual(['KEY=1']);
  });

  test('stays with a repository of its own inside, and with a process inside', async () => {
    const project = await killedAfterIntegration();
    const folder = await worktreeOf(project, '01-a');
    await project.git('init', '-q', join(folder, 'lib'));
    expect(saidOf(await cleaned(project, '--yes', '--save'), 'worktree')).toEqual([
      `keep: ${integrated}, but a repository of its own is in it: lib/.git`,
    ]);
    await rm(join(folder, 'lib'), { recursive: true });
    // giro itself is the process that is there.
    const inside = await project.giro(['clean', '--json', '--yes', '-C', project.path], { cwd: folder });
    expect(inside.stdout).toMatch(/process [0-9]+ \(.*\) is in it/);
    expect(existsSync(folder)).toBe(true);
  });

  test('a branch with commits of a person, or one that is checked out, stays', async () => {
    const project = await killedAfterIntegration();
    await cleaned(project, '--yes');
    const branch = 'refs/heads/giro-issue/s1/01-a';
    await project.git('update-ref', branch, 'giro/s1');
    const elsewhere = join(project.folder, 'mine');
    await project.git('worktree', 'add', '-q', elsewhere, 'giro-issue/s1/01-a');
    expect(saidOf(await cleaned(project, '--yes', '--save'), 'branch', '01-a')).toEqual([
      `keep: it is checked out in ${elsewhere}`,
    ]);
    await project.git('-C', elsewhere, 'commit', '-q', '--allow-empty', '-m', 'mine');
    await project.git('worktree', 'remove', elsewhere);
    expect(saidOf(await cleaned(project, '--yes'), 'branch', '01-a')).toEqual([
      `keep: ${integrated}, but no other branch has its commits`,
    ]);
    await project.git('branch', 'rescued', branch);
    expect(saidOf(await cleaned(project, '--yes'), 'branch', '01-a')).toEqual([
      `remove: ${integrated}, and every commit of it is in rescued`,
    ]);
    expect(await refs(project, 'refs/heads/giro-issue')).toEqual([]);
  });
});

describe('what is not integrated', () => {
  test('of an Issue that asks stays, and the next run goes on from it', async () => {
    const project = await asking();
    const folder = await worktreeOf(project, '01-a');
    const json = await cleaned(project, '--yes', '--save');
    expect(saidOf(json, 'worktree')).toEqual(['keep: needs-human: the next run goes on from it']);
    expect(saidOf(json, 'branch', '01-a')).toEqual(['keep: needs-human: the next run goes on from it']);
    expect(existsSync(folder)).toBe(true);
  });

  test('an agent that a killed giro left running is ended before anything goes, and what it left stays for the next run', async () => {
    const agent = 'echo precious > work.txt; touch "$HOME/at-work"; exec sleep 60\n';
    const project = await makeProject({ issues: { '01-a': {} }, agent });
    const running = project.start(['implement', 's1', '--json']);
    const { worktree } = await running.event('attempt.started');
    const atWork = join(project.home, 'at-work');
    await expect.poll(() => existsSync(atWork), { timeout: 20_000 }).toBe(true);
    running.kill('SIGKILL');
    await running.ended;
    expect(occupantsOf(worktree).map(({ name }) => name)).toEqual(['sleep']);

    const json = await cleaned(project, '--yes', '--save');
    expect(saidOf(json, 'checkouts')).toEqual(['remove: made by a run that is over, from commits that stay']);
    expect(json.notices).toEqual([
      expect.stringMatching(/^left running by a giro that was killed, ended now: the agent of 01-a/),
    ]);
    expect(occupantsOf(worktree)).toEqual([]);
    expect(saidOf(json, 'worktree')).toEqual(['keep: in-progress: the next run goes on from it']);
    expect(await readFile(join(worktree, 'work.txt'), 'utf8')).toBe('precious\n');
  });

  test('of a wontfix Issue: its worktree goes, for the branch has its files, and the branch stays unless it is saved', async () => {
    const project = await asking();
    const folder = await worktreeOf(project, '01-a');
    expect((await project.giro(['answer', 's1/01', '--wontfix'])).code).toBe(0);
    const json = await cleaned(project, '--yes');
    expect(existsSync(folder)).toBe(false);
    expect(saidOf(json, 'branch', '01-a')).toEqual(['keep: wontfix, but no other branch has its commits']);
    expect(await project.show('giro-issue/s1/01-a', '01-a.txt')).toBe('by 01-a');

    await cleaned(project, '--yes', '--save');
    expect(await refs(project, 'refs/heads/giro-issue')).toEqual([]);
    expect(await saved(project, '01-a.txt')).toEqual(['by 01-a']);
  });

  test('of a Spec whose branch was deleted stays too, unless somebody has merged it or it is saved', async () => {
    const project = await asking();
    const folder = await worktreeOf(project, '01-a');
    await writeFile(join(folder, 'more.txt'), 'more\n');
    await project.git('branch', '-qD', 'giro/s1');
    const gone = 'there is no branch giro/s1 any more';
    const json = await cleaned(project, '--yes');
    expect(saidOf(json, 'worktree')).toEqual([`keep: ${gone}, but no commit has its more.txt`]);
    expect(saidOf(json, 'branch')).toEqual([`keep: ${gone}, but no other branch has its commits`]);

    await rm(join(folder, 'more.txt'));
    await project.git('tag', 'kept', 'giro-issue/s1/01-a');
    await cleaned(project, '--yes');
    expect(existsSync(folder)).toBe(false);
    expect(await refs(project, 'refs/heads/giro-issue')).toEqual([]);
    expect(await refs(project, 'refs/giro')).toEqual([]);
  });
});

describe('folders and registrations', () => {
  test('a folder deleted by hand: its registration goes, commits that were made there are saved, the Issue goes on', async () => {
    const project = await asking();
    const folder = await worktreeOf(project, '01-a');
    await writeFile(join(folder, 'idea.txt'), 'an idea\n');
    await project.git('-C', folder, 'add', '-A');
    await project.git('-C', folder, 'commit', '-qm', 'an idea');
    await rm(folder, { recursive: true });
    const json = await cleaned(project, '--yes');
    expect(saidOf(json, 'worktree')).toEqual([expect.stringMatching(/^remove: its folder was deleted/)]);
    expect(await project.git('worktree', 'list')).not.toContain('/s1/w');
    expect(await saved(project, 'idea.txt')).toEqual(['an idea']);
    await project.write(
      'giro.toml',
      (await readFile(join(project.path, 'giro.toml'), 'utf8')).replace('! test', 'test'),
    );
    expect((await project.implement()).code).toBe(0);
  });

  test('a registration of which nothing says that its folder was here, or whose disk may not be mounted, stays', async () => {
    const project = await asking();
    const folder = await worktreeOf(project, '01-a');
    const root = dirname(folder);
    await rename(root, `${root}-unmounted`);
    expect(saidOf(await cleaned(project, '--yes', '--save'), 'worktree')).toEqual([
      expect.stringMatching(/maybe a disk is not mounted$/),
    ]);
    await mkdir(root);
    expect(saidOf(await cleaned(project, '--yes', '--save'), 'worktree')).toEqual([
      'keep: it is not there, and nothing says that it ever was on this machine',
    ]);
    expect(await project.git('worktree', 'list')).toContain(folder);
  });

  test('after the repository was moved its worktrees are left alone, with the way out', async () => {
    const project = await asking();
    const folder = await worktreeOf(project, '01-a');
    const moved = join(project.folder, 'moved');
    await rename(project.path, moved);
    const run = await project.giro(['clean', '--json', '--yes', '--save'], { cwd: moved });
    expect(run.code).toBe(0);
    expect(run.stdout).toMatch(/it is not in .*moved-[0-9a-f]{8}\/s1, where giro keeps those of this repository/);
    expect(run.stdout).toContain('was the repository moved');
    expect(existsSync(join(folder, '01-a.txt'))).toBe(true);
    await rename(moved, project.path);
  });

  test('a cache folder that says it is of another machine, or of nobody, is not touched', async () => {
    const project = await killedAfterIntegration();
    const folder = await worktreeOf(project, '01-a');
    const mark = join(await roomOf(project), 'owner.json');
    const own = await readFile(mark, 'utf8');
    await writeFile(mark, own.replace(/"host":"[^"]*"/, '"host":"elsewhere 1"'));
    const others = await cleaned(project, '--yes', '--save');
    const why = `keep: the folder says that it belongs to ${join(project.path, '.git')} on elsewhere 1`;
    expect([...saidOf(others, 'worktree'), ...saidOf(others, 'checkouts')]).toEqual([why, why]);
    await rm(mark);
    expect(saidOf(await cleaned(project, '--yes', '--save'), 'checkouts')).toEqual([
      'keep: nothing says that it is of this repository; the next run does',
    ]);
    expect(existsSync(join(dirname(folder), 'gates'))).toBe(true);
    // A run says it.
    expect((await project.implement()).code).toBe(0);
    expect(JSON.parse(await readFile(mark, 'utf8'))).toEqual(JSON.parse(own));
  });

  test('the folder of another repository with the same name is not even looked at', async () => {
    const project = await killedAfterIntegration();
    const other = join(project.folder, 'cache/giro/repo-00000000/s1');
    const own = await roomOf(project);
    await mkdir(join(other, 'gates/g1'), { recursive: true });
    await writeFile(join(other, 'gates/g1/file'), 'x');
    const json = await cleaned(project, '--yes', '--save');
    expect(json.items.filter(({ name }) => name.includes('00000000'))).toEqual([]);
    expect(await readFile(join(other, 'gates/g1/file'), 'utf8')).toBe('x');
    expect(await readdir(own)).toEqual(['owner.json']);
  });

  test("what is not giro's in its folders stays and is named", async () => {
    const project = await killedAfterIntegration();
    const root = dirname(await worktreeOf(project, '01-a'));
    for (const name of ['w77', 'aside', 'notes']) {
      await mkdir(join(root, name));
      await writeFile(join(root, name, 'file'), 'x');
    }
    const json = await cleaned(project, '--yes', '--save');
    const named = json.items.filter(({ kind }) => kind === 'folder').map(({ name, why }) => [basename(name), why]);
    expect(named).toEqual([
      ['aside', 'repositories that agents had made in their worktrees'],
      ['notes', 'it is no worktree of this repository'],
      ['w77', 'it is no worktree of this repository'],
    ]);
    expect(await readdir(root)).toEqual(['aside', 'notes', 'w77']);
  });
});

describe('logs and remembered passes', () => {
  test('stay unless they are asked for; logs by their age', async () => {
    const project = await makeProject({ issues: { '01-a': {} } });
    expect((await project.implement()).code).toBe(0);
    const giro = join(project.path, '.git/giro');
    await cleaned(project, '--yes');
    expect(await readdir(join(giro, 'runs'))).toHaveLength(1);
    expect(await readdir(join(giro, 'verdicts'))).not.toEqual([]);

    expect(saidOf(await cleaned(project, '--yes', '--logs', '30d'), 'logs')).toEqual([
      'keep: logs of one run, younger than that',
    ]);
    const json = await cleaned(project, '--yes', '--logs', '0d', '--passes');
    expect(json.removed).toBe(2);
    expect(await readdir(join(giro, 'runs'))).toEqual([]);
    expect(existsSync(join(giro, 'verdicts'))).toBe(false);
    expect((await project.implement()).code).toBe(0);
  });

  test('of a Spec that is named, neither is looked at', async () => {
    const project = await makeProject({ issues: { '01-a': {} } });
    expect((await project.implement()).code).toBe(0);
    const json = await cleaned(project, 's1', '--yes', '--logs', '0d', '--passes');
    expect(json.items.map(({ kind }) => kind)).not.toContain('logs');
    expect(await readdir(join(project.path, '.git/giro/runs'))).toHaveLength(1);
  });
});

describe('asking', () => {
  test('without a terminal nothing is removed without --yes, and it is an error with the way out', async () => {
    const project = await killedAfterIntegration();
    const run = await project.giro(['clean']);
    expect(run.code).toBe(1);
    expect(run.stdout).toContain('can go (');
    expect(run.stderr).toContain('giro clean --yes removes what can go');
    const dry = await project.giro(['clean', '--dry-run', '--yes']);
    expect([dry.code, dry.stderr]).toEqual([0, '']);
    expect(await refs(project, 'refs/heads/giro-issue')).toHaveLength(1);
  });

  test('a Spec that a giro runs is named with its process and left alone; the others are cleaned', async () => {
    const project = await killedAfterIntegration();
    const lock = { format_version: 1, pid: process.pid, spec: 's1', run: 'r', at: 'now' };
    const stat = (await readFile(`/proc/${String(process.pid)}/stat`, 'latin1')).split(') ')[1]?.split(' ') ?? [];
    const owner = JSON.parse(await readFile(join(await roomOf(project), 'owner.json'), 'utf8')) as { host: string };
    const identity = {
      startTime: stat[19],
      bootId: (await readFile('/proc/sys/kernel/random/boot_id', 'utf8')).trim(),
      host: owner.host,
      pidNamespace: await import('node:fs').then(({ readlinkSync }) => readlinkSync('/proc/self/ns/pid')),
    };
    await writeFile(join(project.path, '.git/giro/locks/s1.json'), JSON.stringify({ ...lock, ...identity }));
    const json = await cleaned(project, '--yes', '--save', '--logs', '0d', '--passes');
    expect(saidOf(json, 'spec')).toEqual([
      expect.stringContaining(`giro is already running on s1: process ${String(process.pid)}`),
    ]);
    expect(saidOf(json, 'worktree')).toEqual([]);
    expect(saidOf(json, 'passes')).toEqual([expect.stringMatching(/^keep: .* a giro is running$/)]);
    expect(await refs(project, 'refs/heads/giro-issue')).toHaveLength(1);
  });

  test('a name that nothing is known of is an error that names what is', async () => {
    const project = await killedAfterIntegration();
    const run = await project.giro(['clean', 'other']);
    expect([run.code, run.stderr]).toEqual([1, 'giro: nothing of a Spec other is here\n  known: s1\n']);
  });
});

describe('killed while it cleans', () => {
  const steps = [
    'rename lock#1',
    'git add#2',
    'create giro/salvage#1',
    'create giro/salvage#2',
    'rename trash#1',
    'remove trash#3',
    'remove gitdir#1',
    'remove locked#1',
    'remove facts.json#1',
    'delete heads/giro-issue#1',
  ];
  test.each(steps)('before %s: the next one ends it, and nothing is lost', async (at) => {
    const project = await killedAfterIntegration();
    const folder = await worktreeOf(project, '01-a');
    await writeFile(join(folder, '01-a.txt'), 'mended by hand\n');
    await writeFile(join(folder, 'env.local'), 'KEY=1\n');
    const run = await project.start(['clean', '--yes', '--save'], { env: killedAt(at) }).ended;
    expect(run.signal).toBe('SIGKILL');

    await cleaned(project, '--yes', '--save');
    expect(await saved(project, '01-a.txt')).toContain('mended by hand');
    expect(await saved(project, 'env.local')).toContain('KEY=1');
    expect(await readdir(await roomOf(project))).toEqual(['owner.json']);
    expect(await readdir(join(project.path, '.git/worktrees')).catch(() => [])).toEqual([]);
    expect(await refs(project, 'refs/heads/giro-issue')).toEqual([]);
    expect((await project.implement()).code).toBe(0);
  });
});
