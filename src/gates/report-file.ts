/** The JUnit report that a gate writes into its checkout, which holds foreign files: nothing outside of it is touched. */
import { dirname, join, normalize, sep } from 'node:path';
import { failed, ok, type Result } from '../failure.js';
import type { Evidence } from '../issue.js';
import { readTail, sizeOf } from '../platform/files.js';
import { removeTree } from '../platform/folders.js';
import { realPath } from '../platform/links.js';
import { readJunit } from './read-junit.js';

const largestReport = 32 * 1024 * 1024;

/** Where a report lies. */
export interface ReportPlace {
  readonly folder: string;
  /** Relative to the folder, as giro.toml has it. */
  readonly path: string;
}

/** Removes a report that was there before the gate: it would speak for another run. False: it cannot be reached safely. */
export async function clearReport(place: ReportPlace): Promise<boolean> {
  const file = join(place.folder, place.path);
  const parent = await realPath(dirname(file));
  if (parent === null) return true;
  if (!(await isInside(parent, place.folder))) return false;
  await removeTree(file);
  return true;
}

/** Reads the report, or says why it says nothing. */
export async function readReport(place: ReportPlace): Promise<Result<Evidence, string>> {
  const found = await realPath(join(place.folder, place.path));
  if (found === null) return failed('was not written');
  if (!(await isInside(found, place.folder))) return failed('lies outside of the checkout');
  if ((await sizeOf(found)) > largestReport) return failed('is too large to be read');
  const evidence = readJunit(await textOf(found));
  return evidence === null ? failed('is not a whole JUnit report') : ok(evidence);
}

/** The path as git would name it. */
export function trackedName(path: string): string {
  return normalize(path).split(sep).join('/');
}

async function isInside(path: string, folder: string): Promise<boolean> {
  const real = await realPath(folder);
  return real !== null && (path === real || path.startsWith(real + sep));
}

async function textOf(path: string): Promise<string> {
  try {
    return await readTail(path, largestReport);
  } catch {
    return ''; // A folder, or a pipe.
  }
}
