/** How the program ends on a failure that was expected: said on stderr, exit 1. */
import type { Failure } from '../failure.js';
import { exitCodes } from './exit.js';
import { renderFailure } from './failure-text.js';
import type { ProcessEnd } from './options.js';

/** Says why, and ends with an error. */
export function refuse(failure: Failure): ProcessEnd {
  process.stderr.write(`${renderFailure(failure)}\n`);
  return { exit: exitCodes.error };
}
