import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { eventsOf, makeProject, unchangedBy } from '../rig/giro.js';

test('a Spec of three Issues ends with proof, one merge per Issue, and leaves the person alone', async () => {
  const project = await makeProject({
    issues: { '01-a': {}, '02-b': { frontmatter: 'depends-on: [01]' }, '03-c': {} },
    verify: 'test = "test -f README.md"',
  });
  const run = await unchangedBy(project, () => project.implement());
  expect(run.stderr).toBe('');
  expect(run.code).toBe(0);
  const landed = await project.git('log', '--first-parent', '--format=%s', 'giro/s1');
  expect(landed.split('\n').filter((line) => /^0\d-/.test(line))).toHaveLength(3);
  expect(await project.show('giro/s1', '02-b.txt')).toBe('by 02-b');
  expect(await project.issueFile('01-a')).toMatch(/state: done\n---\n# Issue 01-a[\s\S]*verdict: pass/);
  expect(eventsOf(run, 'run.finished')[0]).toMatchObject({ exit: 0, reason: 'proof', done: 3, total: 3 });
});

test('a gate that cannot pass ends with a hand raised, and status says why', async () => {
  const project = await makeProject({
    issues: { '01-a': {}, '02-b': { frontmatter: 'depends-on: [01]' }, '03-c': {} },
    verify: 'test = "! test -f 01-a.txt"',
  });
  const run = await unchangedBy(project, () => project.implement());
  expect(run.code).toBe(2);
  expect(eventsOf(run, 'run.finished')[0]?.lines.at(-1)).toContain('01-a');
  const status = await project.giro(['status', 's1', '--json']);
  const issues = (JSON.parse(status.stdout) as { issues: { id: string; state: string; waitsFor?: string }[] }).issues;
  expect(issues).toMatchObject([
    { id: '01-a', state: 'needs-human' },
    { id: '02-b', state: 'ready', waitsFor: '01-a' },
    { id: '03-c', state: 'done' },
  ]);
});

test('an agent, a gate and a setup see the documented variables and no others', async () => {
  const seen = (name: string): string => `env | cut -d= -f1 > "$HOME/env-${name}"`;
  const project = await makeProject({
    issues: { '01-a': {} },
    agent: `${seen('agent')}\necho x > a.txt\n`,
    verify: `[verify.test]\nrun = '${seen('gate')}'\nenv = ["GATE_KEY"]`,
    toml: `[worktree]\nsetup = '${seen('setup')}'`,
  });
  const given = {
    ...{ PATH: process.env['PATH'] ?? '', USER: 'me', LOGNAME: 'me', SHELL: '/bin/sh', LANG: 'C.UTF-8', TZ: 'UTC' },
    ...{ LC_TIME: 'C', XDG_STATE_HOME: '/nowhere', GATE_KEY: 'k', AGENT_KEY: 'k', SECRET: 's', EDITOR: 'vim', CI: '' },
    ...{ CLAUDECODE: '1', NODE_OPTIONS: '--no-warnings', HTTPS_PROXY: 'x', GIT_DIR: '/nowhere', GIRO_TUI: '0' },
    ...{ GIRO_ATTEMPT: '9', GIRO_GATE: 'x', npm_config_x: '1' },
  };
  const run = await project.giro(['implement', 's1', '--json'], { env: given });
  expect(run.code).toBe(0);
  const listed = [
    'PATH',
    'HOME',
    'USER',
    'LOGNAME',
    'SHELL',
    'LANG',
    'TZ',
    'LC_TIME',
    'XDG_CACHE_HOME',
    'XDG_STATE_HOME',
  ];
  const everywhere = [...listed, 'GIRO_RUN', 'GIRO_SPEC', 'GIRO_SLOT', 'GIRO_PORT_BASE', 'TMPDIR'];
  const names = async (name: string): Promise<readonly string[]> =>
    (await readFile(join(project.home, `env-${name}`), 'utf8'))
      .trim()
      .split('\n')
      // What a shell sets for itself.
      .filter((variable) => !['PWD', 'OLDPWD', 'SHLVL', '_'].includes(variable))
      .sort();
  const agent = ['GIRO_ROLE', 'GIRO_ISSUE', 'GIRO_ATTEMPT', 'GIRO_ENVELOPE'];
  expect(await names('agent')).toEqual([...everywhere, ...agent].sort());
  expect(await names('gate')).toEqual([...everywhere, 'CI', 'GATE_KEY', 'GIRO_GATE', 'GIRO_ISSUE'].sort());
  expect(await names('setup')).toEqual([...everywhere, 'CI'].sort());
});
