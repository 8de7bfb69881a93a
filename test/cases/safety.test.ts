import { existsSync } from 'node:fs';
import { mkdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { cleaned, killedAt, saidOf, worktreeOf } from '../rig/clean.js';
import { eventsOf, makeProject, type GiroRun, type Project } from '../rig/giro.js';

const noticesOf = (run: GiroRun): string =>
  eventsOf(run, 'run.notice')
    .map(({ message }) => message)
    .join('\n');

/** Whether a text is in a file of that name: of a folder that is there, or at any ref. */
async function isReachable(
  project: Project,
  folder: string,
  file: { readonly path: string; readonly text: string },
): Promise<boolean> {
  const there = await readFile(join(folder, file.path), 'utf8').catch(() => null);
  if (there?.trimEnd() === file.text) return true;
  const refs = (await project.git('for-each-ref', '--format=%(refname)')).split('\n');
  const texts = await Promise.all(refs.map((ref) => project.show(ref, file.path)));
  return texts.includes(file.text);
}

/** Worktrees inside the repository, as with a cache folder or a home that is one; the person's git ignores them. */
async function insideOwn(agent: string): Promise<Project> {
  const project = await makeProject({ issues: { '01-a': {} }, budget: 'attempts = 1' });
  await project.write('agent.sh', `#!/bin/sh\nset -e\nREPOSITORY='${project.path}'\n${agent}`, 0o755);
  await mkdir(join(project.path, '.cache'));
  await writeFile(join(project.path, '.git/info/exclude'), '.cache/\n');
  project.environment['XDG_CACHE_HOME'] = join(project.path, '.cache');
  return project;
}

test.each([
  ['deletes .git', 'rm .git'],
  [
    'makes a repository of its own there',
    'rm .git; git init -q; git add -A; git -c user.name=a -c user.email=a@b commit -qm own',
  ],
  ["links .git to the person's", 'rm .git; echo "gitdir: $REPOSITORY/.git" > .git'],
  ["makes .git a link to the person's", 'rm .git; ln -s "$REPOSITORY/.git" .git'],
])(
  'C081 an agent that %s, in a worktree inside the repository: found out, its edits kept, the checkout never touched',
  async (_what, act) => {
    const project = await insideOwn(
      `if [ "$GIRO_ATTEMPT" = 1 ]; then echo edited >> README.md; echo new > new.txt; ${act}; fi\necho "$GIRO_ATTEMPT" > a.txt\n`,
    );
    const before = await personsSide(project);
    const run = await project.implement();
    const folder = await worktreeOf(project, '01-a');
    expect(saidOf(await cleaned(project, '--yes', '--save'), 'worktree')).toEqual([
      'keep: needs-human: the next run goes on from it',
    ]);
    expect(run.code).toBe(2);
    expect(folder.startsWith(`${project.path}/`)).toBe(true);
    expect(eventsOf(run, 'attempt.judged')).toMatchObject([{ verdict: 'fail', findings: [{ file: '.git' }] }]);
    expect(await readFile(join(folder, 'README.md'), 'utf8')).toBe('# Test\nedited\n');
    expect(await project.show('giro-issue/s1/01-a', 'new.txt')).toBe('new');
    expect(await personsSide(project)).toBe(before);
    const again = await project.implement();
    expect(await personsSide(project)).toBe(before);
    expect(again.code, again.stdout).toBe(0);
    expect(await project.show('giro/s1', 'new.txt')).toBe('new');
    expect(await project.show('giro/s1', 'README.md')).toBe('# Test\nedited');
  },
);

test('C081 with nothing to go on from, such a worktree is kept too: nobody can say what belongs to it', async () => {
  const project = await insideOwn('echo new > new.txt; rm .git\n');
  expect((await project.implement()).code).toBe(2);
  expect((await project.giro(['answer', 's1/01', '--wontfix'])).code).toBe(0);
  const before = await personsSide(project);
  const kept = await cleaned(project, '--yes', '--save');
  expect(saidOf(kept, 'worktree')).toEqual(['keep: wontfix, but its .git was changed or removed']);
  expect(await personsSide(project)).toBe(before);
});

/** Everything of the person's, the worktrees left out that are inside. */
async function personsSide(project: Project): Promise<string> {
  return (await project.fingerprint())
    .split('\n')
    .filter((line) => !line.startsWith('file .cache/'))
    .join('\n');
}

/** Everything that may be in the worktree of an Issue that asks. */
const contents = [
  { path: 'README.md', text: '# by the agent' },
  { path: 'made.txt', text: 'made' },
  { path: 'report.local', text: 'a report' },
  { path: 'mended.txt', text: 'mended by hand' },
  { path: 'src/deep/new.txt', text: 'new by hand' },
  { path: 'by-hand.local', text: 'ignored, by hand' },
] as const;

/** One Issue that asks; its worktree has what the agent left, and what a person changed since. */
async function askingWithWork(): Promise<{ readonly project: Project; readonly folder: string }> {
  const project = await makeProject({
    issues: { '01-a': {} },
    files: { 'README.md': '# Test\n', '.gitignore': '*.local\n', 'mended.txt': 'base\n' },
    budget: 'attempts = 1',
    agent: 'echo "# by the agent" > README.md; echo made > made.txt; echo a report > report.local\n',
    verify: 'test = "test -f \\"$HOME/green\\""',
  });
  expect((await project.implement()).code).toBe(2);
  const folder = await worktreeOf(project, '01-a');
  await mkdir(join(folder, 'src/deep'), { recursive: true });
  for (const { path, text } of contents.slice(3)) await writeFile(join(folder, path), `${text}\n`);
  return { project, folder };
}

test.each([
  ['giro clean', ['clean']],
  ['giro clean --yes', ['clean', '--yes']],
  ['giro clean --yes --save', ['clean', '--yes', '--save', '--logs', '0d', '--passes']],
  ['giro stop', ['stop']],
  ['giro stop --now', ['stop', 's1', '--now']],
  ['giro status', ['status', 's1']],
  ['giro answer', ['answer', 's1/01', 'again']],
])('C073 %s takes nothing from an Issue that asks', async (_name, args) => {
  const { project, folder } = await askingWithWork();
  const run = await project.giro(args);
  expect([run.code, run.stderr.replace(/^giro: nothing was removed[^]*/, '')]).toEqual([
    args[0] === 'clean' && args.length === 1 ? 1 : 0,
    '',
  ]);
  for (const { path, text } of contents)
    expect([path, await readFile(join(folder, path), 'utf8')]).toEqual([path, `${text}\n`]);
});

test.each(['red again', 'green', 'killed', 'wontfix'])('C073 nor does a re-run that ends %s', async (end) => {
  const { project, folder } = await askingWithWork();
  if (end === 'green') await writeFile(join(project.home, 'green'), '');
  if (end === 'wontfix') {
    await project.giro(['answer', 's1/01', '--wontfix']);
    const done = await cleaned(project, '--yes', '--save');
    expect(done.notices.join('\n')).toMatch(/files .* are kept[^]*ignored files .* are kept[^]*commits .* are kept/);
    await expect(worktreeOf(project, '01-a')).rejects.toThrow('no worktree');
  } else if (end === 'killed') {
    await project.start(['implement', 's1', '--json'], { env: killedAt('start gate#1') }).ended;
  } else {
    const run = await project.implement();
    expect(run.code, run.stdout).toBe(end === 'green' ? 0 : 2);
  }
  const missing: string[] = [];
  for (const file of contents) if (!(await isReachable(project, folder, file))) missing.push(file.path);
  expect(missing).toEqual([]);
});

test('C073 ignored files that are too much to save keep the worktree, after the run too', async () => {
  const { project, folder } = await askingWithWork();
  await writeFile(join(folder, 'big.local'), Buffer.alloc(17 * 1024 * 1024));
  await writeFile(join(project.home, 'green'), '');
  const run = await project.implement();
  expect(run.code, run.stdout).toBe(0);
  expect(noticesOf(run)).toMatch(/is left, with ignored files that are too much to save: big\.local/);
  expect((await stat(join(folder, 'big.local'))).size).toBe(17 * 1024 * 1024);
});

test("C075 an agent's only output is ignored: its worktree stays, and is listed and saved before it goes, whatever the person's git shows", async () => {
  const project = await makeProject({
    issues: { '01-a': {} },
    files: { 'README.md': '# Test\n', '.gitignore': 'report.json\nnode_modules\n' },
    budget: 'attempts = 1',
    agent: 'echo useful > report.json; mkdir -p node_modules/x; echo x > node_modules/x/y\n',
  });
  await project.git('config', 'status.showUntrackedFiles', 'no');
  const run = await project.implement();
  expect(run.code).toBe(2);
  const folder = await worktreeOf(project, '01-a');
  const report = join(folder, 'report.json');
  for (const args of [[], ['--yes'], ['--yes', '--save']]) {
    expect(saidOf(await cleaned(project, ...args), 'worktree')).toEqual([
      'keep: needs-human: the next run goes on from it',
    ]);
    expect(await readFile(report, 'utf8')).toBe('useful\n');
  }
  await project.giro(['answer', 's1/01', '--wontfix']);
  await writeFile(join(folder, 'untracked.txt'), 'untracked\n');
  const [kept] = (await cleaned(project)).items.filter(({ kind }) => kind === 'worktree');
  expect(kept).toMatchObject({ fate: 'keep', why: 'wontfix, but no commit has its untracked.txt' });
  expect(kept?.ignored.map(({ path, kind }) => [path, kind])).toEqual([
    ['node_modules', 'again'],
    ['report.json', 'other'],
  ]);
  const done = await cleaned(project, '--yes', '--save');
  expect(existsSync(folder)).toBe(false);
  expect(done.notices.join('\n')).toMatch(
    /ignored files of its worktree are kept as refs\/giro\/salvage\/s1\/01-a\/\d/,
  );
  expect(await isReachable(project, 'nowhere', { path: 'report.json', text: 'useful' })).toBe(true);
  expect(await isReachable(project, 'nowhere', { path: 'untracked.txt', text: 'untracked' })).toBe(true);
});
