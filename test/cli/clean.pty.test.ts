/** `giro clean` asks on a terminal. */
import { readFile, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { expect, test } from 'vitest';
import { killedAfterIntegration, worktreeOf } from '../rig/clean.js';
import type { Project } from '../rig/giro.js';
import { startTerminal, type Terminal } from '../rig/tmux.js';

const program = resolve(import.meta.dirname, '../../bin/giro.js');

function started(project: Project): Promise<Terminal> {
  const env = { ...project.environment, TERM: 'xterm', HOME: project.home, PATH: process.env['PATH'] ?? '' };
  return startTerminal({ argv: [process.execPath, program, 'clean'], cwd: project.path, env });
}

function branches(project: Project): Promise<string> {
  return project.git('for-each-ref', '--format=%(refname)', 'refs/heads/giro-issue');
}

test('giro clean shows what can go and asks: no without an answer, no with Ctrl+C, and only yes removes', async () => {
  const project = await killedAfterIntegration();
  for (const key of ['Enter', 'n', 'C-c']) {
    const terminal = await started(project);
    await terminal.waitFor('Remove what can go (3');
    await terminal.keys(...(key === 'n' ? ['n', 'Enter'] : [key]));
    await terminal.exitCode();
    expect(await branches(project)).toBe('refs/heads/giro-issue/s1/01-a');
  }
  const terminal = await started(project);
  await terminal.waitFor('[y/N]');
  await terminal.keys('y', 'Enter');
  expect(await terminal.exitCode()).toBe(0);
  expect(await branches(project)).toBe('');
});

test('what changes while a person thinks is looked at again, and stays', async () => {
  const project = await killedAfterIntegration();
  const folder = await worktreeOf(project, '01-a');
  const terminal = await started(project);
  await terminal.waitFor('[y/N]');
  await writeFile(join(folder, '01-a.txt'), 'mended meanwhile\n');
  await terminal.keys('y', 'Enter');
  await terminal.waitFor('1 stayed, as something changed meanwhile');
  expect(await terminal.exitCode()).toBe(0);
  expect(await readFile(join(folder, '01-a.txt'), 'utf8')).toBe('mended meanwhile\n');
  expect(await branches(project)).toBe('');
});
