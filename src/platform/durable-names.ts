/**
 * Makes names durable: a file that is synced can still be lost with the name that it was given, until its folder is synced.
 * Folders are synced together, right before something is to rest on what is in them.
 */
import { statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { syncFolder } from './files.js';
import { hasCode } from './entries.js';

/** What was written so long ago the system has brought to the disk by itself. */
const writtenBackMs = 60_000;

/** The time of a folder is that of a clock which may be behind by some milliseconds. */
const clockMs = 12;

/** The folders of git's loose objects and packs. */
export class ObjectNames {
  readonly #folder: string;
  readonly #fanOut: readonly string[];
  #touched = new Set<string>();
  /** What changed since then is not known to be durable. */
  #since = Date.now() - writtenBackMs;
  #byOthers = true;
  #syncing: Promise<unknown> | null = null;

  constructor(folder: string) {
    this.#folder = folder;
    const names = Array.from({ length: 256 }, (_, first) => first.toString(16).padStart(2, '0'));
    this.#fanOut = [...names, 'pack'].map((name) => join(folder, name));
  }

  /** An object was given its name by giro. */
  touched(folder: string): void {
    this.#touched.add(folder);
  }

  /** git wrote objects, nobody knows where. */
  touchedByGit(): void {
    this.#byOthers = true;
  }

  /** Brings the names of all objects so far to the disk; what others are about to sync is waited for too. */
  async settle(): Promise<void> {
    const syncing = Promise.all([this.#syncing, this.#sync()]);
    this.#syncing = syncing;
    try {
      await syncing;
    } finally {
      if (this.#syncing === syncing) this.#syncing = null;
    }
  }

  async #sync(): Promise<void> {
    const [now, since] = [Date.now(), this.#since - clockMs];
    const looked = this.#byOthers ? this.#fanOut.filter((folder) => isChanged(folder, since)) : [];
    const folders = new Set([...this.#touched, ...looked]);
    if (folders.size === 0) return;
    // A folder that is new is a name too.
    if (isChanged(this.#folder, since)) folders.add(this.#folder);
    this.#touched = new Set();
    if (this.#byOthers) this.#since = now;
    this.#byOthers = false;
    try {
      await syncFolders([...folders]);
    } catch (error) {
      for (const one of folders) this.#touched.add(one);
      throw error;
    }
  }
}

/** The folders of refs. */
export class RefNames {
  readonly #commonDir: string;
  readonly #reftable: boolean;
  readonly #known = new Set<string>();

  constructor(commonDir: string, reftable: boolean) {
    this.#commonDir = commonDir;
    this.#reftable = reftable;
  }

  /** Brings to the disk what a ref is now; one that is gone is gone from the packed refs too. */
  async settle(ref: string, isGone: boolean): Promise<void> {
    if (this.#reftable) return syncFolders([join(this.#commonDir, 'reftable')]);
    const [folders, news]: [string[], string[]] = [isGone ? [this.#commonDir] : [], []];
    for (let name = dirname(ref); name !== '.'; name = dirname(name)) {
      folders.push(join(this.#commonDir, name));
      // The name of a folder stands in the one above, and is new only once; git removes a folder that is empty.
      if (this.#known.has(name) && !isGone) break;
      if (isGone) this.#known.delete(name);
      else news.push(name);
    }
    await syncFolders(folders);
    // Only now: who moves another ref there meanwhile has to wait for the same.
    for (const name of news) this.#known.add(name);
  }
}

function isChanged(folder: string, since: number): boolean {
  return (statSync(folder, { throwIfNoEntry: false })?.mtimeMs ?? 0) >= since;
}

async function syncFolders(folders: readonly string[]): Promise<void> {
  await Promise.all(
    folders.map(async (folder) => {
      try {
        await syncFolder(folder);
      } catch (error) {
        // git removed it meanwhile, or it belongs to somebody else, who is to sync it.
        if (!hasCode(error, 'ENOENT', 'ENOTDIR', 'EACCES')) throw error;
      }
    }),
  );
}
