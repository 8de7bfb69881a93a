import { execFile } from 'node:child_process';
import { cp, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';
import { eventsOf, makeProject, unchangedBy, type Project } from '../rig/giro.js';
import { temporaryFolder } from '../rig/temp.js';

const exec = promisify(execFile);

const issues = { '01-a': {} };

test('an index.lock that was left in the checkout is in nobody’s way, and stays', async () => {
  const project = await makeProject({ issues, agent: 'echo x > a.txt\n' });
  await writeFile(join(project.path, '.git/index.lock'), '');
  expect((await project.implement()).code).toBe(0);
  expect(await project.show('giro/s1', 'a.txt')).toBe('x');
  await expect(project.git('add', '.')).rejects.toThrow('index.lock');
});

test('from a detached HEAD it ends as from a branch, and HEAD stays detached', async () => {
  const project = await makeProject({ issues, agent: 'echo x > a.txt\n' });
  await project.commit('what giro needs');
  await project.git('switch', '-q', '--detach');
  const run = await unchangedBy(project, () => project.implement());
  expect(run.code).toBe(0);
  expect(await project.show('giro/s1', 'a.txt')).toBe('x');
  expect(await project.git('rev-parse', '--abbrev-ref', 'HEAD')).toBe('HEAD');
});

test('of a sparse checkout agents get all files, and it stays sparse', async () => {
  const project = await makeProject({
    issues,
    files: { 'far/b.txt': 'b\n', 'near/c.txt': 'c\n' },
    agent: 'cat far/b.txt > a.txt\n',
  });
  await project.commit('what giro needs');
  await project.git('sparse-checkout', 'set', 'near', 'docs');
  const run = await unchangedBy(project, () => project.implement());
  expect(run.code).toBe(0);
  expect(await project.show('giro/s1', 'a.txt')).toBe('b');
  expect(await project.git('ls-files', '-t', 'far')).toBe('S far/b.txt');
  expect(await project.show('giro/s1', 'far/b.txt')).toBe('b');
});

test('pointers of LFS, CRLF and names beyond ASCII come through a run byte for byte', async () => {
  const files = {
    '.gitattributes': '*.bin filter=lfs diff=lfs merge=lfs -text\n',
    'x.bin': 'version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n',
    'crlf.txt': 'a\r\nb\r\n',
    'Grüße 世界.txt': 'hi\n',
  };
  const project = await makeProject({ issues, files, agent: 'cp "Grüße 世界.txt" "größer é.txt"\n' });
  await project.commit('what giro needs');
  expect((await project.implement()).code).toBe(0);
  for (const path of Object.keys(files))
    expect(await project.git('rev-parse', `giro/s1:${path}`)).toBe(await project.git('rev-parse', `main:${path}`));
  expect(await project.show('giro/s1', 'größer é.txt')).toBe('hi');
});

test('a shallow clone is implemented like any other', async () => {
  const project = await makeProject({ issues, agent: 'echo x > a.txt\n' });
  await project.commit('what giro needs');
  await writeFile(join(project.path, '.git/shallow'), `${await project.git('rev-parse', 'HEAD')}\n`);
  expect(await project.git('rev-parse', '--is-shallow-repository')).toBe('true');
  expect((await project.implement()).code).toBe(0);
  expect(await project.show('giro/s1', 'a.txt')).toBe('x');
});

test('in a bare repository it says what it needs, and makes nothing', async () => {
  const project = await makeProject({ issues });
  await project.commit('what giro needs');
  const bare = join(project.folder, 'bare.git');
  await project.git('clone', '-q', '--bare', project.path, bare);
  const run = await project.giro(['implement', 's1'], { cwd: bare });
  expect([run.code, run.stdout]).toEqual([1, '']);
  expect(run.stderr).toContain('this is a bare repository');
  expect(await project.git('-C', bare, 'for-each-ref', '--format=%(refname)')).toBe('refs/heads/main');
});

/** The second Issue asks, for its agent does nothing until a file says so. */
async function asking(): Promise<Project> {
  const project = await makeProject({
    issues: { '01-a': {}, '02-b': { frontmatter: 'depends-on: [01]' } },
    agent: 'if [ $GIRO_ISSUE = 01-a ] || [ -e "$HOME/go" ]; then ls > "seen-$GIRO_ISSUE.txt"; fi\n',
    budget: 'attempts = 1',
  });
  await project.commit('what giro needs');
  expect((await project.implement()).code).toBe(2);
  await writeFile(join(project.home, 'go'), '');
  return project;
}

test('a commit that a person put on giro/<spec> between two runs stays below what lands next', async () => {
  const project = await asking();
  const mine = join(project.folder, 'mine');
  await project.git('worktree', 'add', '-q', mine, 'giro/s1');
  await writeFile(join(mine, 'theirs.txt'), 'theirs\n');
  await project.git('-C', mine, 'add', 'theirs.txt');
  await project.git('-C', mine, 'commit', '-q', '-m', 'by a person');
  const theirs = await project.git('-C', mine, 'rev-parse', 'HEAD');
  await project.git('-C', mine, 'switch', '-q', '--detach');
  expect((await project.implement()).code).toBe(0);
  await project.git('merge-base', '--is-ancestor', theirs, 'giro/s1');
  expect(await project.show('giro/s1', 'seen-02-b.txt')).toContain('theirs.txt');
});

test('without the branch of an Issue that a person deleted between two runs the Spec comes to its end', async () => {
  const project = await asking();
  await project.git('branch', '-qD', 'giro-issue/s1/02-b');
  expect((await project.implement()).code).toBe(0);
  expect(await project.show('giro/s1', 'seen-02-b.txt')).not.toBeNull();
});

test('a disk that fills up is said as such, and the same command goes on when there is room', async (context) => {
  const { path: room } = await temporaryFolder();
  const mounted = await exec('mount', ['-t', 'tmpfs', '-o', 'size=8m', 'tmpfs', room]).then(
    () => true,
    () => false,
  );
  context.skip(!mounted, 'nothing can be mounted here');
  onTestFinished(() => exec('umount', ['-l', room]).then(() => undefined));
  const project = await makeProject({
    issues,
    // Fills the disk the first time, as a build may.
    agent: `test -f "$HOME/filled" || { : > "$HOME/filled"; head -c 20000000 /dev/zero > ${room}/filler; }; echo x > a.txt\n`,
    budget: 'attempts = 3',
  });
  await cp(join(project.path, '.git'), join(room, 'git'), { recursive: true });
  await exec('mount', ['--bind', join(room, 'git'), join(project.path, '.git')]);
  onTestFinished(() => exec('umount', ['-l', join(project.path, '.git')]).then(() => undefined));
  const full = await project.implement();
  expect(full.code).toBe(1);
  expect(full.stderr).toMatch(
    /^giro: the disk is full: .*\n {2}make room on it \(df -h shows which\), then run the same command again/m,
  );
  expect(full.stderr).not.toContain('bug');
  expect(eventsOf(full, 'run.finished')[0]?.lines.join('\n')).toContain('the disk is full');
  expect(await project.git('fsck', '--full')).not.toMatch(/missing|error/);
  await rm(join(room, 'filler'));
  const again = await project.implement();
  expect(again.code, again.stdout).toBe(0);
  expect(await project.show('giro/s1', 'a.txt')).toBe('x');
});
