import { readFile, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { expect, test } from 'vitest';
import { makeProject } from '../rig/giro.js';
import { startTerminal } from '../rig/tmux.js';

const program = resolve(import.meta.dirname, '../../bin/giro.js');

test('giro answer opens the editor, with the packet below a line; what stands above it is the answer', async () => {
  const project = await makeProject({ issues: { '01-a': {} }, budget: 'attempts = 1', verify: 'test = "false"' });
  expect((await project.implement()).code).toBe(2);
  const editor = join(project.home, 'editor');
  const lines = [
    '#!/bin/sh',
    'cp "$2" "$HOME/shown"',
    'printf "# Keep this heading\\nand this.\\n" | cat - "$2" > "$2.new"',
    'mv "$2.new" "$2"',
  ];
  await writeFile(editor, `${lines.join('\n')}\n`, { mode: 0o755 });
  const terminal = await startTerminal({
    argv: [process.execPath, program, 'answer', 's1/01'],
    cwd: project.path,
    env: { ...project.environment, HOME: project.home, EDITOR: `${editor} --wait`, PATH: process.env['PATH'] ?? '' },
  });
  expect(await terminal.exitCode()).toBe(0);
  expect(await readFile(join(project.home, 'shown'), 'utf8')).toMatch(/>8[^]*QUESTION {3}gate test failed/);
  const file = await project.issueFile('01-a');
  expect(file).toContain('> # Keep this heading\n> and this.');
  expect(file).not.toContain('>8');
});
