/**
 * A lock that is held for milliseconds, among the processes that change one thing.
 *
 * S1 Inside a process one after the other, in the order asked; between processes by a file that is complete the moment it
 *    exists (made by `link`).
 * S2 It is taken over only from an owner that is proven dead, by exactly one of those who wait.
 * S3 Nobody waits for ever for one and the same hold, and who gives up is told whose it is.
 * S4 Nothing is synced: after a power cut the owner is of an earlier boot, or its file is empty, which no owner ever made.
 */
import { randomUUID } from 'node:crypto';
import { dirname } from 'node:path';
import { failed, ok, type Failure, type Result } from '../failure.js';
import type { Clock } from './clock.js';
import { replaceExclusive } from './exclusive.js';
import { linkExclusive, readIfExists, removeFile } from './files.js';
import { makeFolder } from './folders.js';
import { isAlive, ownIdentity, parseIdentity } from './identity.js';
import { shellWord } from './text.js';

/** Does something while nobody else does what the same lock guards; a failure: somebody else keeps it. Never one inside another. */
export type WhileAlone = <T>(work: () => Promise<T>) => Promise<Result<T, Failure>>;

/** What a short lock needs. */
export interface ShortLockPorts {
  readonly path: string;
  /** What it guards, for whoever has to be told. */
  readonly guards: string;
  readonly clock: Pick<Clock, 'monotonic' | 'sleep'>;
}

/** Longer than anything that is done under one; the time of one hold, however many were before it. */
const longestHoldMs = 30_000;
const longestPauseMs = 20;
/** Looking whether an owner lives costs more than looking whether it is still there. */
const looksPerProof = 25;

/** A lock at a path. */
export class ShortLock {
  readonly #ports: ShortLockPorts;
  #last: Promise<unknown> = Promise.resolve();
  #identity = '';
  /** The hold that was seen last, and since when: whoever asks next does not wait for it all over again. */
  #seen = '';
  #since = 0;

  constructor(ports: ShortLockPorts) {
    this.#ports = ports;
  }

  /** See `WhileAlone`. */
  whileAlone<T>(work: () => Promise<T>): Promise<Result<T, Failure>> {
    const turn = this.#last.then(() => this.#holding(work));
    this.#last = turn.catch(() => undefined);
    return turn;
  }

  async #holding<T>(work: () => Promise<T>): Promise<Result<T, Failure>> {
    const { path } = this.#ports;
    const text = this.#text();
    const refusal = await this.#take(text);
    if (refusal !== null) return failed(refusal);
    try {
      return ok(await work());
    } finally {
      if ((await readIfExists(path))?.toString('utf8') === text) await removeFile(path);
    }
  }

  /** `null`: it is ours. */
  async #take(text: string): Promise<Failure | null> {
    const { path, clock } = this.#ports;
    for (let look = 0; ; look += 1) {
      if (await this.#link(text)) return null;
      const present = await readIfExists(path);
      if (present === null) continue;
      const holder = present.toString('utf8');
      if (holder !== this.#seen) [this.#seen, this.#since, look] = [holder, clock.monotonic(), 0];
      if (look % looksPerProof === 0 && isGone(holder) && (await replaceExclusive(path, present, text))) return null;
      if (clock.monotonic() - this.#since >= longestHoldMs) return this.#refusal(holder);
      await clock.sleep(Math.min(2 ** Math.min(look, 10), longestPauseMs));
    }
  }

  async #link(text: string): Promise<boolean> {
    try {
      return await linkExclusive(this.#ports.path, text, { sync: false });
    } catch (error) {
      if (!(error instanceof Error && 'code' in error && error.code === 'ENOENT')) throw error;
      await makeFolder(dirname(this.#ports.path));
      return linkExclusive(this.#ports.path, text, { sync: false });
    }
  }

  /** No two holds have the same, so that one that lasts is told from one that comes again. */
  #text(): string {
    if (this.#identity === '') this.#identity = JSON.stringify(ownIdentity()).slice(0, -1);
    return `${this.#identity},"hold":"${randomUUID()}"}\n`;
  }

  #refusal(holder: string): Failure {
    const { path, guards } = this.#ports;
    const owner = parseIdentity(holder);
    const who = owner === null ? 'somebody' : `process ${String(owner.pid)} on ${owner.host}`;
    return {
      kind: 'locked',
      message: `${who} has kept the lock of ${guards} for ${String(longestHoldMs / 1000)} s: ${path}`,
      hint: `it may be suspended (fg, or kill -CONT); when it is surely gone: rm ${shellWord(path)}`,
    };
  }
}

/** Whether nobody holds it: the owner is proven dead, or the file is what a power cut left of one that was not synced. */
function isGone(holder: string): boolean {
  const owner = parseIdentity(holder);
  return owner === null ? /^\0*$/.test(holder) : isAlive(owner) === 'dead';
}
