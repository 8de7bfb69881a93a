/** The private git dir (DESIGN 10): a few files of giro's own; it appears when the first call needs it. */
import { join, resolve } from 'node:path';
import { createHash } from 'node:crypto';
import { readIfExists, writeAtomic } from '../platform/files.js';
import { makeFolder, removeTree } from '../platform/folders.js';
import type { Oid } from '../issue.js';
import { checkoutKeys, mirrorConfig, privateConfig, type UserSettings } from './git-environment.js';
import { parseConfig } from './git-parse.js';
import type { GitMachine, Place } from './git-types.js';

/** What a private git dir is made from. */
export interface PrivateRequest {
  readonly machine: GitMachine;
  readonly place: Place;
  /** `null`: a temporary folder, removed by `close`. */
  readonly runFolder: string | null;
}

/** What differs between git dirs of giro's own. */
interface Filling {
  readonly head: string;
  readonly settings: UserSettings | null;
  /** Added to its config. */
  readonly config?: string;
}

const unsynced = { sync: false };
const noBranch = 'ref: refs/heads/none';

/** One private git dir of one run. */
export class PrivateDir {
  readonly #request: PrivateRequest;
  #made: Promise<string> | null = null;
  #ready: Promise<string> | null = null;
  #settings: Promise<UserSettings> | null = null;

  constructor(request: PrivateRequest) {
    this.#request = request;
  }

  /** Its path; good for reading objects. */
  folder(): Promise<string> {
    return (this.#made ??= this.#make());
  }

  /** Its path; good for writing and for work trees too, since it has the person's ignore patterns. */
  ready(): Promise<string> {
    return (this.#ready ??= this.#complete());
  }

  /** What the person and the repository say; read once. */
  settings(): Promise<UserSettings> {
    return (this.#settings ??= this.#readSettings());
  }

  /** Stores gitignore patterns as a file. */
  async patternFile(patterns: readonly string[]): Promise<string> {
    const text = `${patterns.join('\n')}\n`;
    const name = `patterns-${createHash('sha256').update(text).digest('hex').slice(0, 16)}`;
    const path = join(await this.ready(), 'info', name);
    await writeAtomic(path, text, unsynced);
    return path;
  }

  /**
   * A second git dir with a commit as its `HEAD`, so that `status` can compare the person's checkout without reading
   * their config. Gives the environment that uses it.
   */
  async mirror(head: Oid): Promise<Readonly<Record<string, string>>> {
    const { gitDir, topLevel } = this.#request.place;
    const folder = join(await this.folder(), 'mirror');
    const settings = await this.settings();
    await this.#fill(folder, { head, settings, config: mirrorConfig(settings) });
    return {
      ...this.environment(folder),
      GIT_INDEX_FILE: join(gitDir, 'index'),
      ...(topLevel === null ? {} : { GIT_WORK_TREE: topLevel }),
    };
  }

  /** The environment of a call that uses a private git dir. */
  environment(folder: string): Readonly<Record<string, string>> {
    const { machine, place } = this.#request;
    return { ...machine.environment, GIT_DIR: folder, GIT_OBJECT_DIRECTORY: join(place.commonDir, 'objects') };
  }

  async #make(): Promise<string> {
    const { machine, runFolder } = this.#request;
    const folder = runFolder === null ? await machine.temporaryFolder() : resolve(runFolder, 'git');
    await this.#fill(folder, { head: noBranch, settings: null });
    return folder;
  }

  async #complete(): Promise<string> {
    const folder = await this.folder();
    await this.#fill(folder, { head: noBranch, settings: await this.settings() });
    return folder;
  }

  /** Writes what makes a folder a git dir, with the object format and the shallow border of the repository. */
  async #fill(folder: string, { head, settings, config = '' }: Filling): Promise<void> {
    const { commonDir, hash } = this.#request.place;
    await makeFolder(join(folder, 'refs'));
    await makeFolder(join(folder, 'info'));
    const shallow = await readIfExists(join(commonDir, 'shallow'));
    if (shallow !== null) await writeAtomic(join(folder, 'shallow'), shallow, unsynced);
    await writeAtomic(join(folder, 'config'), privateConfig(hash, settings) + config, unsynced);
    await writeAtomic(join(folder, 'info', 'exclude'), settings?.excludes ?? '', unsynced);
    await writeAtomic(join(folder, 'HEAD'), `${head}\n`, unsynced);
  }

  async #readSettings(): Promise<UserSettings> {
    const { machine, place } = this.#request;
    const { commonDir, topLevel } = place;
    const keys = ['core.excludesfile', 'core.sharedrepository', ...checkoutKeys];
    const pattern = `^(${keys.join('|').replaceAll('.', '\\.')})$`;
    const call = { args: ['config', '-z', '--get-regexp', pattern], accept: [0, 1] };
    const { stdout } = await machine.run(call, commonDir, { ...machine.personEnvironment, GIT_DIR: commonDir });
    const values = parseConfig(stdout);
    const shared = values.get('core.sharedrepository') ?? null;
    const person = await readIfExists(ignoreFile(values.get('core.excludesfile'), topLevel ?? commonDir, machine.own));
    const own = await readIfExists(join(commonDir, 'info', 'exclude'));
    return {
      shared: shared !== null && isPlain(shared) ? shared : null,
      checkout: new Map([...values].filter(([key, value]) => checkoutKeys.includes(key) && isPlain(value))),
      excludes: `${person?.toString() ?? ''}\n${own?.toString() ?? ''}\n`,
    };
  }

  /** Removes it when it was only temporary. */
  async close(): Promise<void> {
    if (this.#request.runFolder === null && this.#made !== null) await removeTree(await this.#made);
  }
}

/** A word: nothing that could end its line in a config file. */
function isPlain(value: string): boolean {
  return /^[a-z0-9]+$/i.test(value);
}

function ignoreFile(configured: string | undefined, base: string, own: GitMachine['own']): string {
  const home = own['HOME'] ?? '/nonexistent';
  if (configured === undefined) return join(own['XDG_CONFIG_HOME'] ?? join(home, '.config'), 'git', 'ignore');
  return configured.startsWith('~/') ? join(home, configured.slice(2)) : resolve(base, configured);
}
