/** Folders that were put out of the way to be deleted in the background; what a killed run left of them goes with the next. */
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { rename } from '../platform/files.js';
import { listFolder, removeTree } from '../platform/folders.js';

const trashName = /^\.trash-[0-9a-f]{16}$/;

/** The trash of one run. */
export class Trash {
  readonly #deleting = new Set<Promise<void>>();

  /** Takes what is at a path of a folder away at once, and deletes it later. */
  async put(folder: string, path: string): Promise<void> {
    const aside = join(folder, `.trash-${randomBytes(8).toString('hex')}`);
    await rename(path, aside);
    this.#deleteLater(aside);
  }

  /** Deletes what earlier runs have put away in a folder. Nobody else may be at work there. */
  async sweep(folder: string): Promise<void> {
    for (const { name, kind } of await listFolder(folder)) {
      if (kind === 'folder' && trashName.test(name)) this.#deleteLater(join(folder, name));
    }
  }

  #deleteLater(path: string): void {
    const work = removeTree(path)
      // What withstands is litter; the next sweep finds it.
      .catch(() => undefined)
      .finally(() => this.#deleting.delete(work));
    this.#deleting.add(work);
  }

  /** Waits until all of it is deleted. */
  async emptied(): Promise<void> {
    await Promise.all(this.#deleting);
  }
}
