import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { eventsOf, makeProject, unchangedBy, type Project } from '../rig/giro.js';

async function busyCheckout(project: Project): Promise<void> {
  await project.write('staged.txt', 'staged');
  await project.git('add', 'staged.txt');
  await project.write('README.md', '# Unstaged\n');
  await project.write('untracked.txt', 'untracked');
  await project.write('.README.md.swp', 'swap');
  await project.write('stashed.txt', 'stashed');
  await project.git('add', 'stashed.txt');
  await project.git('stash', 'push', '-q', '--', 'stashed.txt');
}

test("C076 the person's checkout, index and stash are the same after proof, after needs-human, and after a kill", async () => {
  const project = await makeProject({
    issues: { '01-a': {}, '02-b': {} },
    agent: 'if [ -f "$HOME/stay" ]; then sleep 60; fi\necho "$GIRO_ATTEMPT" > "$GIRO_ISSUE.txt"\n',
    verify: 'test = "! test -f \\"$HOME/red\\""',
  });
  await busyCheckout(project);
  await writeFile(join(project.home, 'red'), '');
  expect((await unchangedBy(project, () => project.implement())).code).toBe(2);
  await writeFile(join(project.home, 'stay'), '');
  await unchangedBy(project, async () => {
    const running = project.start(['implement', 's1', '--json']);
    const attempt = await running.event('attempt.started');
    running.kill('SIGTERM');
    await running.ended;
    return attempt;
  });
  await project.git('update-ref', 'refs/keep/one', 'HEAD');
  await import('node:fs/promises').then((fs) =>
    Promise.all([fs.rm(join(project.home, 'red')), fs.rm(join(project.home, 'stay'))]),
  );
  expect((await unchangedBy(project, () => project.implement())).code).toBe(0);
});

test('C078 variables of an outer git are not heard, by giro or by its children', async () => {
  const project = await makeProject({
    issues: { '01-a': {} },
    agent: 'env | grep "^GIT_" > git.txt || true\necho x >> git.txt\n',
    verify: 'test = "! env | grep -q ^GIT_"',
  });
  const outer = join(project.path, '.git');
  const run = await unchangedBy(project, () =>
    project.giro(['implement', 's1', '--json'], {
      env: {
        GIT_DIR: outer,
        GIT_INDEX_FILE: join(outer, 'index'),
        GIT_WORK_TREE: project.path,
        GIT_CONFIG_COUNT: '1',
        GIT_CONFIG_KEY_0: 'core.bare',
        GIT_CONFIG_VALUE_0: 'true',
      },
    }),
  );
  expect(run.code).toBe(0);
  expect(await project.show('giro/s1', 'git.txt')).toBe('x');
});

test('C078 it works as a hook of git', async () => {
  const project = await makeProject({ issues: { '01-a': {} } });
  await project.commit('Spec');
  const output = join(project.folder, 'hook.log');
  await mkdir(join(project.path, '.git/hooks'), { recursive: true });
  const command = `"${process.execPath}" "${join(import.meta.dirname, '../../bin/giro.js')}" implement s1 --json > "${output}" 2>&1`;
  await writeFile(join(project.path, '.git/hooks/post-commit'), `#!/bin/sh\n${command}\n`, { mode: 0o755 });
  await project.write('more.txt', 'more');
  await project.commit('starts giro');
  expect(await project.show('giro/s1', '01-a.txt')).toBe('by 01-a');
  expect(await project.git('status', '--porcelain')).toBe('');
});

test('C079 editor, pager and ssh settings change nothing', async () => {
  const project = await makeProject({ issues: { '01-a': {}, '02-b': {} } });
  await project.git('config', 'core.editor', 'false');
  await project.git('config', 'core.hooksPath', '/nowhere');
  const run = await unchangedBy(project, () =>
    project.giro(['implement', 's1', '--json'], {
      env: {
        EDITOR: 'vim',
        VISUAL: 'vim',
        PAGER: 'less',
        GIT_EDITOR: 'vim',
        GIT_PAGER: 'less',
        GIT_SSH_COMMAND: 'ssh -v',
        GIT_ASKPASS: 'x',
        SSH_ASKPASS: 'x',
      },
    }),
  );
  expect(run.stderr).toBe('');
  expect(run.code).toBe(0);
  expect(eventsOf(run, 'issue.integrated')).toHaveLength(2);
});
