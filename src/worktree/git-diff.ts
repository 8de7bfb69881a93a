/** Compares trees through one long-lived `diff-tree --stdin`. */
import { randomBytes } from 'node:crypto';
import type { Oid } from '../issue.js';
import type { Conversation } from '../platform/plumbing.js';
import { Turns } from './turns.js';

/** What every comparison asks for. */
export const diffFormat: readonly string[] = ['-r', '-z', '--raw', '--numstat', '--no-renames', '--no-abbrev'];

/** One process for all comparisons of a run. */
export class TreeDiffer {
  readonly #start: () => Promise<Conversation>;
  readonly #turns = new Turns();
  #conversation: Conversation | null = null;

  constructor(start: () => Promise<Conversation>) {
    this.#start = start;
  }

  /** What git says to two trees, in `diffFormat`; `null` when it ended over that. */
  compare(from: Oid, to: Oid): Promise<Buffer | null> {
    return this.#turns.take(async () => {
      const conversation = (this.#conversation ??= await this.#start());
      // A line that names nothing is said again, and ends the answer.
      const mark = `${randomBytes(16).toString('hex')}-end\n`;
      conversation.write(`${from} ${to}\n${mark}`);
      const answer = await conversation.readUntil(Buffer.from(mark));
      const header = `${from} ${to}\n`;
      if (answer?.toString('latin1', 0, header.length) === header) return answer.subarray(header.length);
      this.#conversation = null;
      await conversation.close();
      return null;
    });
  }

  async close(): Promise<void> {
    await this.#turns.over();
    await this.#conversation?.close();
    this.#conversation = null;
  }
}
