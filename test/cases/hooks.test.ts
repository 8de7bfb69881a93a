import { existsSync } from 'node:fs';
import { chmod, mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { eventsOf, makeProject, unchangedBy, type GiroRun, type Project } from '../rig/giro.js';

/** Reformats what is staged, notes that it ran, and refuses. */
const refusing = '#!/bin/sh\necho ran >> "$HOME/hook-ran"\nsed -i s/x/y/ *.txt\nexit 1\n';

async function addHook(project: Project, folder: string, name = 'pre-commit'): Promise<void> {
  await mkdir(join(project.path, folder), { recursive: true });
  await writeFile(join(project.path, folder, name), refusing);
  await chmod(join(project.path, folder, name), 0o755);
}

/** The one line about hooks. */
function noticeOn(run: GiroRun): string {
  const notices = eventsOf(run, 'run.notice').map(({ message }) => message);
  const about = notices.filter((message) => message.startsWith('git hooks'));
  expect(about).toHaveLength(1);
  return about[0] ?? '';
}

const agents = {
  'leaves its edits uncommitted': 'echo x > "$GIRO_ISSUE.txt"\n',
  'commits, and is refused': [
    'echo x > "$GIRO_ISSUE.txt"; git add -A',
    'git -c user.name=a -c user.email=a@b commit -qm mine || echo refused >> "$HOME/refused"',
  ].join('\n'),
};

test.each(Object.entries(agents))(
  'C074 a hook that reformats and refuses takes nothing from an agent that %s: it is named, and not run by giro',
  async (what, agent) => {
    const project = await makeProject({ issues: { '01-a': {}, '02-b': {} }, agent });
    await addHook(project, '.git/hooks');
    const run = await unchangedBy(project, () => project.implement());
    expect(run.code, run.stdout).toBe(0);
    expect(noticeOn(run)).toContain('.git/hooks/pre-commit');
    const isRefused = what.includes('refused');
    expect(existsSync(join(project.home, 'refused'))).toBe(isRefused);
    // The agent's own git runs it, and what it reformatted is the agent's edit.
    expect(existsSync(join(project.home, 'hook-ran'))).toBe(isRefused);
    for (const id of ['01-a', '02-b']) expect(await project.show('giro/s1', `${id}.txt`)).toBe(isRefused ? 'y' : 'x');
    // A hook that was not run is no check.
    expect(new Set(eventsOf(run, 'gate.finished').map(({ gate }) => gate))).toEqual(new Set(['test']));
    expect((await project.giro(['proof', 's1'])).stdout).not.toContain('pre-commit');
  },
);

test('C074 as the gate that the message proposes it refuses, and the edits stay', async () => {
  const project = await makeProject({
    issues: { '01-a': {} },
    files: { 'README.md': '# Test\n', '.githooks/pre-commit': '#!/bin/sh\nif grep -q x *.txt; then exit 1; fi\n' },
    budget: 'attempts = 1',
  });
  await project.git('config', 'core.hooksPath', '.githooks');
  await project.write('agent.sh', '#!/bin/sh\necho x > a.txt\n', 0o755);
  const proposed = /as gates in \[verify\]: (.*)$/.exec(noticeOn(await project.implement()))?.[1] ?? '';
  expect(proposed).toBe('pre-commit = "sh .githooks/pre-commit"');
  expect(await project.show('giro/s1', 'a.txt')).toBe('x');

  await project.git('update-ref', '-d', 'refs/heads/giro/s1');
  await project.git('update-ref', '-d', 'refs/heads/giro-issue/s1/01-a');
  const policy = await readFile(join(project.path, 'giro.toml'), 'utf8');
  await project.write('giro.toml', policy.replace('[verify]\n', `[verify]\n${proposed}\n`));
  const run = await project.implement();
  expect(run.code).toBe(2);
  expect(eventsOf(run, 'run.notice').some(({ message }) => message.startsWith('git hooks'))).toBe(false);
  expect(JSON.stringify(eventsOf(run, 'attempt.judged')[0]?.findings)).toContain('pre-commit');
  expect(await project.show('giro/s1', 'a.txt')).toBeNull();
  expect(await project.show('giro-issue/s1/01-a', 'a.txt')).toBe('x');
});

test.each([
  ['a generated folder that only the checkout has', '.husky/_', true],
  ['every tree', '.hooks', false],
])('C080 hooks that refuse, from %s: the same in worktree and checkout', async (_where, folder, isIgnored) => {
  const project = await makeProject({
    files: { 'README.md': '# Test\n', 'line.txt': 'base\n', '.gitignore': isIgnored ? '.husky/_\n' : 'nothing\n' },
    issues: { '01-a': {}, '02-b': { frontmatter: 'depends-on: [01]' } },
    agent: agents['commits, and is refused'],
  });
  for (const hook of ['pre-commit', 'commit-msg', 'pre-merge-commit', 'reference-transaction', 'post-checkout'])
    await addHook(project, folder, hook);
  if (!isIgnored) await project.commit('hooks');
  await project.git('config', 'core.hooksPath', folder);
  const run = await unchangedBy(project, () => project.implement());
  expect(run.code, run.stdout).toBe(0);
  expect(noticeOn(run)).toContain(`${folder}/pre-commit`);
  expect(eventsOf(run, 'issue.integrated').map(({ issue }) => issue)).toEqual(['01-a', '02-b']);
  // Where there is no such folder the agent's own git runs no hook either; giro's never does.
  expect(existsSync(join(project.home, 'refused'))).toBe(!isIgnored);
  for (const id of ['01-a', '02-b']) expect(await project.show('giro/s1', `${id}.txt`)).toMatch(/^[xy]$/);
  expect(new Set(eventsOf(run, 'gate.finished').map(({ gate }) => gate))).toEqual(new Set(['test']));
  expect((await project.giro(['clean', '--yes'])).code).toBe(0);
});
