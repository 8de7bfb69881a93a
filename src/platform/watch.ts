/** Hearing at once that a folder has changed, where the system tells; whoever listens must also look now and then. */
import { watch } from 'node:fs';

/** Calls `changed` when an entry of a folder comes, goes or is replaced; says nothing where the system cannot tell. */
export function watchFolder(folder: string, changed: () => void): { close(): void } {
  try {
    const watcher = watch(folder, { persistent: false, recursive: false }, () => {
      changed();
    });
    watcher.on('error', () => {
      watcher.close();
    });
    return watcher;
  } catch {
    // Not there, no more watches on this machine, or a file system without them.
    return { close: () => undefined };
  }
}
