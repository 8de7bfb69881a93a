/** Lets a person write a text in their own editor, as `git commit` does. */
import { spawn } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { failed, ok, type Failure, type Result } from '../failure.js';

/** What is above this line is the text; so a text may hold lines that begin with `#`. */
const scissors = '# ------------------------ >8 ------------------------';

/** Opens `$VISUAL`, `$EDITOR` or vi on a file that shows `about` below a line; gives what stands above it. */
export async function writeInEditor(
  about: string,
  own: Readonly<Record<string, string | undefined>>,
): Promise<Result<string, Failure>> {
  const editor = [own['VISUAL'], own['EDITOR'], 'vi'].find((name) => name !== undefined && name.trim() !== '') ?? 'vi';
  const folder = await mkdtemp(join(tmpdir(), 'giro-answer-'));
  const file = join(folder, 'ANSWER.md');
  const hint = '# Write your answer above this line. Everything below it is left out; an empty answer changes nothing.';
  try {
    await writeFile(file, `\n${scissors}\n${hint}\n\n${about}\n`, { mode: 0o600 });
    const end = await runEditor(editor, file, own);
    if (end !== null)
      return failed({ kind: 'environment', message: `the editor ${editor} ${end}`, hint: 'set VISUAL or EDITOR' });
    const text = await readFile(file, 'utf8');
    const cut = text.indexOf(scissors);
    return ok((cut < 0 ? text : text.slice(0, cut)).trim());
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** The variable is a shell command of the person's own, so that it may have options. `null`: it ended well. */
function runEditor(
  editor: string,
  file: string,
  own: Readonly<Record<string, string | undefined>>,
): Promise<string | null> {
  return new Promise((done) => {
    const child = spawn('/bin/sh', ['-c', `${editor} "$1"`, 'sh', file], { stdio: 'inherit', env: { ...own } });
    child.on('error', (error) => {
      done(`could not start: ${error.message}`);
    });
    child.on('exit', (code, signal) => {
      done(code === 0 ? null : `ended with ${signal ?? `exit ${String(code)}`}`);
    });
  });
}
