/**
 * Work trees by way of the private git dir: checking out, taking back, comparing, cleaning. Every folder has an index file
 * of its own that only giro writes; calls on one index are done one after the other.
 */
import { dirname, isAbsolute, relative } from 'node:path';
import { parseOid, type Oid } from '../issue.js';
import { kindOf } from '../platform/files.js';
import { removeTree } from '../platform/folders.js';
import { timeOfDisk } from '../platform/stamps.js';
import { parsePaths } from './git-parse.js';
import { GitError, type GitCall, type RunGit } from './git-types.js';
import { encodeName } from './objects.js';
import { refill, type RefillGit } from './refill.js';

/** What work on folders needs. */
export interface FolderPorts {
  /** Runs in the private git dir. */
  readonly run: RunGit;
  readonly git: RefillGit;
  readonly realPath: (path: string) => Promise<string>;
  /** Stores patterns as a file for `core.excludesFile` and gives its path. */
  readonly patternFile: (patterns: readonly string[]) => Promise<string>;
  /** Folders of the person: giro never cleans or fills one, or one that holds one. */
  readonly untouchable: readonly string[];
}

/** What is known of an index. */
interface Known {
  readonly tree: Oid;
  /** When the folder was seen to be as it says, by the clock of the disk; null: something may have changed since. */
  readonly seenAt: number | null;
}

/** The work trees giro made. */
export class Folders {
  readonly #ports: FolderPorts;
  readonly #known = new Map<string, Known>();
  readonly #turns = new Map<string, Promise<unknown>>();

  constructor(ports: FolderPorts) {
    this.#ports = ports;
  }

  /**
   * A folder where nothing changed costs one `lstat` per file. What lies in the way of a tracked file is replaced; what
   * is not tracked stays.
   */
  checkOut(folder: string, index: string, tree: Oid): Promise<void> {
    return this.#inTurn(index, async () => {
      await this.#assertOurs(folder);
      this.#known.delete(index);
      const call = { args: ['read-tree', '--reset', '-u', tree], env: workTree(folder, index) };
      try {
        await this.#ports.run(call);
      } catch (error) {
        if (!(error instanceof GitError) || error.code === null || (await kindOf(index)) === null) throw error;
        // A kill may leave an index that cannot be read; without one every file is simply written again.
        await removeTree(index);
        await this.#ports.run(call);
      }
      this.#known.set(index, { tree, seenAt: null });
    });
  }

  /** As `checkOut`, for a folder where `changed` or `isUntouched` just saw nothing: only what differs is looked at. */
  advance(folder: string, index: string, tree: Oid): Promise<void> {
    const fromThere = this.#inTurn(index, async () => {
      await this.#assertOurs(folder);
      const known = this.#known.get(index);
      this.#known.delete(index);
      const seenAt = known?.seenAt ?? null;
      const mine =
        known !== undefined &&
        seenAt !== null &&
        (await refill(this.#ports.git, { folder, index, from: known.tree, to: tree, seenAt }));
      if (!mine) await this.#ports.run({ args: ['read-tree', '-m', '-u', tree], env: workTree(folder, index) });
      this.#known.set(index, { tree, seenAt: null });
    });
    // Something was changed meanwhile after all, and git refuses to overwrite that.
    return fromThere.catch((error: unknown) => {
      if (!(error instanceof GitError) || error.code === null) throw error;
      return this.checkOut(folder, index, tree);
    });
  }

  snapshot(folder: string, index: string, exclude: readonly string[]): Promise<Oid> {
    return this.#inTurn(index, async () => {
      await this.#assertOurs(folder);
      this.#known.delete(index);
      const env = workTree(folder, index);
      if (exclude.length === 0) {
        await this.#stage({ args: ['add', '-A'], env });
      } else {
        await this.#stageBut(await this.#ports.patternFile(exclude), env);
      }
      const { stdout } = await this.#ports.run({ args: ['write-tree'], env });
      const tree = parseOid(stdout.toString().trim());
      this.#known.set(index, { tree, seenAt: null });
      return tree;
    });
  }

  /** Patterns hide untracked files from `add`, unless the tree's own .gitignore says `!`: those are taken out again. */
  async #stageBut(patterns: string, env: Readonly<Record<string, string>>): Promise<void> {
    const listed = { args: ['ls-files', '-z', '-c', '-i', '-X', patterns], env };
    const before = new Set(parsePaths((await this.#ports.run(listed)).stdout));
    await this.#stage({ args: ['-c', `core.excludesFile=${patterns}`, 'add', '-A'], env });
    const added = parsePaths((await this.#ports.run(listed)).stdout).filter((path) => !before.has(path));
    if (added.length === 0) return;
    const input = Buffer.concat(added.flatMap((path) => [encodeName(path), Buffer.from([0])]));
    await this.#ports.run({ args: ['update-index', '--force-remove', '-z', '--stdin'], env, input });
  }

  async #stage(call: GitCall): Promise<void> {
    const output = await this.#ports.run(call);
    // The one way `add` skips content and still says 0: nothing below an unreadable folder would be in the tree.
    if (/^warning: could not open directory/m.test(output.stderr))
      throw new GitError(call.args, output.code, output.stderr);
  }

  /**
   * Times are compared first, and the content of every file whose times are too close to the index to be trusted. Only
   * when something differs by that, refreshing looks whether its content does too (and says 1 when it does).
   */
  changed(folder: string, index: string): Promise<readonly string[]> {
    return this.#inTurn(index, async () => {
      await this.#assertOurs(folder);
      const env = workTree(folder, index);
      const args = ['diff-files', '-z', '--name-only', '--no-renames', '--ignore-submodules=all'];
      const at = await timeOfDisk(dirname(index));
      const touched = parsePaths((await this.#ports.run({ args, env })).stdout);
      this.#saw(index, touched.length === 0 ? at : null);
      if (touched.length === 0) return touched;
      await this.#ports.run({ args: ['update-index', '-q', '--refresh'], env, accept: [0, 1] });
      return parsePaths((await this.#ports.run({ args, env })).stdout);
    });
  }

  /** Whether a folder holds the tracked files of its index as they are there, and nothing else, ignored or not. */
  isUntouched(folder: string, index: string): Promise<boolean> {
    return this.#inTurn(index, async () => {
      await this.#assertOurs(folder);
      // One path of any kind is enough to know.
      const call = { args: ['ls-files', '-z', '-m', '-o', '--directory'], env: workTree(folder, index), maxBytes: 1 };
      const at = await timeOfDisk(dirname(index));
      const isUntouched = (await this.#ports.run(call)).stdout.length === 0;
      this.#saw(index, isUntouched ? at : null);
      return isUntouched;
    });
  }

  clean(folder: string, index: string, keep: readonly string[]): Promise<void> {
    return this.#inTurn(index, async () => {
      await this.#assertOurs(folder);
      const patterns = keep.flatMap((pattern) => ['-e', pattern]);
      await this.#ports.run({ args: ['clean', '-ffdxq', ...patterns], env: workTree(folder, index) });
    });
  }

  #saw(index: string, seenAt: number | null): void {
    const known = this.#known.get(index);
    if (known !== undefined) this.#known.set(index, { tree: known.tree, seenAt });
  }

  /** Refuses a link (it may lead to the person's files), and the person's own folders. */
  async #assertOurs(folder: string): Promise<void> {
    if (!isAbsolute(folder)) throw new Error(`refusing to work in ${folder}: the path is not absolute`);
    const kind = await kindOf(folder);
    if (kind !== 'folder')
      throw new Error(`refusing to work in ${folder}: it is ${kind === null ? 'not there' : `a ${kind}`}`);
    const real = await this.#ports.realPath(folder);
    for (const protectedFolder of this.#ports.untouchable) {
      if (contains(real, protectedFolder))
        throw new Error(`refusing to work in ${folder}: it holds ${protectedFolder}`);
    }
  }

  /** An index has one user at a time, and a lock that is there when its turn comes was left by a kill. */
  async #inTurn<T>(index: string, work: () => Promise<T>): Promise<T> {
    if (!isAbsolute(index)) throw new Error(`not an absolute path: ${index}`);
    const previous = this.#turns.get(index) ?? Promise.resolve();
    const turn = previous.then(async () => {
      await removeTree(`${index}.lock`);
      return work();
    });
    const settled = turn.catch(() => undefined);
    this.#turns.set(index, settled);
    try {
      return await turn;
    } finally {
      if (this.#turns.get(index) === settled) this.#turns.delete(index);
    }
  }
}

/** Whether `inner` is `outer` or lies in it. */
export function contains(outer: string, inner: string): boolean {
  const path = relative(outer, inner);
  return path === '' || (path !== '..' && !path.startsWith('../') && !isAbsolute(path));
}

function workTree(folder: string, index: string): Readonly<Record<string, string>> {
  return { GIT_WORK_TREE: folder, GIT_INDEX_FILE: index };
}
