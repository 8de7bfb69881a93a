/** What `giro status` shows of stopping: that it was asked for, that it goes on, and what keeps giro from starting. */
import type { SpecSlug } from '../issue.js';
import { printable } from '../platform/text.js';
import { engineLocksOf } from '../store/engines.js';
import { lockOwner } from '../store/lock.js';
import { findStopFile, readStopAnswer, readStopRequest } from '../store/stop.js';

/** That a run was asked to stop. */
export interface StoppingJson {
  /** When it was asked, or said that it is stopping. */
  readonly since: string;
  /** Why, in its own words; absent: it has not answered yet. */
  readonly why?: string;
}

/** What a person laid down. */
export interface StopFileJson {
  readonly path: string;
  /** Its first line. */
  readonly says: string;
  /** The command that takes it away. */
  readonly remove: string;
}

/** Who runs a Spec, whether that is to stop, and what keeps it from running. */
export async function runningOf(
  commonDir: string,
  spec: SpecSlug,
): Promise<{
  readonly running: { readonly pid: number; readonly host: string; readonly stopping?: StoppingJson } | null;
  readonly stopFile?: StopFileJson;
}> {
  const owner = await lockOwner(commonDir, spec);
  const stopping = owner === null ? null : await stoppingOf(commonDir, spec);
  const running = owner === null || stopping === null ? owner : { ...owner, stopping };
  return { running, ...(await stopFileOf(commonDir, spec)) };
}

/** What keeps a Spec, or (`null`) everything, from running. */
export async function stopFileOf(
  commonDir: string,
  spec: SpecSlug | null,
): Promise<{ readonly stopFile?: StopFileJson }> {
  const file = await findStopFile(commonDir, spec);
  return file === null ? {} : { stopFile: { path: file.path, says: file.says, remove: file.remove } };
}

/** Says it in lines. */
export function stopLines(about: {
  readonly running?: { readonly stopping?: StoppingJson } | null;
  readonly stopFile?: StopFileJson;
}): readonly string[] {
  const stopping = about.running?.stopping;
  const { stopFile } = about;
  const says = stopFile === undefined || stopFile.says === '' ? '' : ` (${stopFile.says})`;
  return [
    ...(stopping === undefined
      ? []
      : stopping.why === undefined
        ? [`asked to stop at ${stopping.since}, not answered yet`]
        : [`stopping since ${stopping.since}: ${stopping.why}`]),
    ...(stopFile === undefined
      ? []
      : [`a file keeps it from starting${says}: ${printable(stopFile.path)}, take it away: ${stopFile.remove}`]),
  ];
}

async function stoppingOf(commonDir: string, spec: SpecSlug): Promise<StoppingJson | null> {
  const locks = await engineLocksOf(commonDir, spec);
  for (const lock of locks) {
    const answer = await readStopAnswer(lock);
    if (answer !== null) return { since: answer.at, why: answer.why };
  }
  for (const lock of locks) {
    const request = await readStopRequest(lock);
    if (request !== null) return { since: request.at };
  }
  return null;
}
