import { existsSync } from 'node:fs';
import { mkdtemp, realpath, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';

/** A folder of one test. */
export interface TemporaryFolder {
  readonly path: string;
  remove(): Promise<void>;
}

/**
 * Makes a folder that is removed after the test. In memory where that can be had, which is faster and spares the disk, with a
 * short name, since a unix socket's path is limited to 108 bytes.
 */
export async function temporaryFolder(): Promise<TemporaryFolder> {
  const root = existsSync('/dev/shm') ? '/dev/shm' : await realpath(tmpdir());
  const path = await mkdtemp(join(root, 'gt-'));
  const remove = (): Promise<void> => rm(path, { recursive: true, force: true });
  removeAfterTest(remove);
  return { path, remove };
}

/** In a hook (`beforeAll`) there is no test to wait for; its owner removes the folder. */
function removeAfterTest(remove: () => Promise<void>): void {
  try {
    onTestFinished(remove);
  } catch {
    // Not inside a test.
  }
}
