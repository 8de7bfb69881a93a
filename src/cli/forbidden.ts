/** What a run says that a `STOP` file keeps from starting: exit 2, as when it had come a moment later. */
import type { EventBody } from '../event.js';
import { systemClock } from '../platform/clock.js';
import { ndjsonOf } from '../report/ndjson.js';
import { specsFolder } from '../spec.js';
import { exitCodes } from './exit.js';
import type { Forbidden } from './opened.js';
import type { ImplementOptions, ProcessEnd } from './options.js';
import { newRunId } from './run-id.js';
import { write, type Terminal } from './show.js';
import type { Target } from './target.js';

/** Says that nothing was started, and the one command after which it can. */
export function forbidden(
  { file, target }: Forbidden,
  { options, terminal }: { readonly options: ImplementOptions; readonly terminal: Terminal },
): ProcessEnd {
  const says = file.says === '' ? '' : ` (${file.says})`;
  const line = `stopped: the ${file.name} file${says} is there, nothing was started; go on with: ${file.remove} && giro implement ${nameOf(target)}`;
  const event = { v: 1 as const, at: systemClock.iso(), run: newRunId(), ...finished(target, [line]) };
  write(terminal, options.json ? `${ndjsonOf(event)}\n` : `${line}\n`);
  return { exit: exitCodes.needsHuman };
}

function finished(target: Target, lines: readonly string[]): EventBody {
  const [exit, reason, gitProcesses] = [exitCodes.needsHuman, 'stopped', 0] as const;
  if (target.kind === 'backlog') return { type: 'backlog.finished', exit, reason, specs: [], gitProcesses, lines };
  return { type: 'run.finished', spec: null, exit, reason, tip: null, done: 0, total: 0, gitProcesses, lines };
}

function nameOf(target: Target): string {
  switch (target.kind) {
    case 'backlog':
      return specsFolder;
    case 'spec':
      return target.spec;
    case 'issue':
      return `${target.spec}/${target.issue}`;
  }
}
