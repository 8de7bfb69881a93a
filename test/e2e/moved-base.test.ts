import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { eventsOf, makeProject, unchangedBy, type GiroRun, type Project } from '../rig/giro.js';

/** A Spec whose second Issue asks, for its agent does nothing until a file says so. */
async function stopped(integrate: string): Promise<Project> {
  const project = await makeProject({
    issues: { '01-a': {}, '02-b': { frontmatter: 'depends-on: [01]' } },
    agent: 'if [ $GIRO_ISSUE = 01-a ] || [ -e "$HOME/go" ]; then ls > "seen-$GIRO_ISSUE.txt"; fi\n',
    budget: 'attempts = 1',
    verify: 'test = "! test -e broken.txt"',
    toml: integrate,
  });
  await project.commit('what giro needs');
  expect((await project.implement()).code).toBe(2);
  await writeFile(join(project.home, 'go'), '');
  return project;
}

async function moved(project: Project, file: string, content: string): Promise<void> {
  await project.write(file, content);
  await project.commit(`main moves: ${file}`);
}

const notices = (run: GiroRun): string =>
  eventsOf(run, 'run.notice')
    .map(({ message }) => message)
    .join('\n');
const onStart = '[integrate]\nbase = "on-start"';

test('what moved on the branch of the base is said, and left where it is', async () => {
  const project = await stopped('');
  await moved(project, 'new.txt', 'new\n');
  const run = await unchangedBy(project, () => project.implement());
  expect(run.code).toBe(0);
  expect(notices(run)).toMatch(
    /^main has moved to [0-9a-f]{7}, which giro\/s1 does not have; \[integrate\] base = "on-start" takes it along$/m,
  );
  expect(await project.show('giro/s1', 'new.txt')).toBeNull();
});

test('with on-start it goes through the lane before an agent starts, and the branch can be fast-forwarded', async () => {
  const project = await stopped(onStart);
  await moved(project, 'new.txt', 'new\n');
  const run = await unchangedBy(project, () => project.implement());
  expect(run.code).toBe(0);
  expect(notices(run)).toMatch(/^main has moved to [0-9a-f]{7}: taken along through the lane$/m);
  expect(await project.show('giro/s1', 'seen-02-b.txt')).toContain('new.txt');
  const story = await project.git('log', '--first-parent', '--format=%s', 'giro/s1');
  expect(story).toMatch(/^s1: takes along main at [0-9a-f]{7}$/m);
  await project.git('merge-base', '--is-ancestor', 'main', 'giro/s1');
  expect((await project.giro(['proof', 's1'])).code).toBe(0);
  expect(notices(await project.implement())).not.toContain('main');
});

test.each([
  ['conflicts', 'seen-01-a.txt', 'by hand\n', 'base-conflict'],
  ['is red together', 'broken.txt', 'x\n', 'base-red'],
])('what %s asks, before anything is paid, and can be left away', async (_what, file, content, cause) => {
  const project = await stopped(onStart);
  const before = await project.show('giro/s1', 'seen-01-a.txt');
  await moved(project, file, content);
  const run = await project.implement();
  expect(run.code).toBe(2);
  expect(eventsOf(run, 'spec.escalated')).toMatchObject([{ cause }]);
  expect(eventsOf(run, 'attempt.started')).toEqual([]);
  expect(await project.show('giro/s1', 'seen-01-a.txt')).toBe(before);
  expect((await project.giro(['status', 's1'])).stdout).toContain('[integrate] base = "never"');

  const policy = (await project.show('HEAD', 'giro.toml')) ?? '';
  await project.write('giro.toml', policy.replace('"on-start"', '"never"'));
  expect((await project.implement()).code).toBe(0);
});

test('with on-validate it is taken along when all Issues are done, also what moved during the run', async () => {
  const project = await stopped('[integrate]\nbase = "on-validate"');
  const agent = `echo new > "${project.path}/new.txt"\ngit -C "${project.path}" add new.txt\n`;
  const commit = `git -C "${project.path}" -c user.name=p -c user.email=p@example.org commit -qm "main moves"\n`;
  await project.write('agent.sh', `#!/bin/sh\nls > seen.txt\n${agent}${commit}`, 0o755);
  const run = await project.implement();
  expect(run.code).toBe(0);
  expect(await project.show('giro/s1', 'seen.txt')).not.toContain('new.txt');
  expect(await project.show('giro/s1', 'new.txt')).toBe('new');
  await project.git('merge-base', '--is-ancestor', 'main', 'giro/s1');
});
