/** The shell that gates run in. It must know `pipefail`, or `false | tail` would pass. */
import { failed, ok, type Result } from '../failure.js';
import type { Environment } from '../platform/environment.js';
import { runPlumbing } from '../platform/plumbing.js';

/** A shell up to its command line, which comes as the last argument. */
export type Shell = readonly [string, ...string[]];

/** No start-up file of the user or the system has a say in a verdict. */
const candidates: readonly Shell[] = [
  ['bash', '--noprofile', '--norc', '-o', 'pipefail', '-c'],
  ['sh', '-o', 'pipefail', '-c'],
];

/** Finds the first shell of the machine that really fails a pipe whose first command fails. */
export async function findShell(env: Environment): Promise<Result<Shell, string>> {
  for (const shell of candidates) {
    const [file, ...options] = shell;
    const { code } = await runPlumbing({ file, args: [...options, 'false | true'], env, cwd: '/', maxBytes: 4096 });
    // 1 is the status of `false`; a shell that does not know the option exits with another one.
    if (code === 1) return ok(shell);
  }
  return failed('no shell with pipefail found: install bash');
}
