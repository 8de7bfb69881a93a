/** What giro notes about a worktree in its own storage, so that a later run knows what it may overwrite there. */
import { basename, dirname, join } from 'node:path';
import { parseOid, type Oid } from '../issue.js';
import { readIfExists, writeAtomic } from '../platform/files.js';
import { makeFolder } from '../platform/folders.js';

/** Engine storage of a folder, beside it so that it is there for the next run. */
export function storeOf(folder: string): string {
  return join(dirname(folder), 'store', basename(folder));
}

/** The files in which it stands what the set-up made in a folder, and what giro notes about it. */
export function notesOn(folder: string): { readonly stamp: string; readonly facts: string } {
  const store = storeOf(folder);
  return { stamp: join(store, 'setup.json'), facts: join(store, 'facts.json') };
}

/** The notes on one folder. */
export interface Facts {
  readonly commit: Oid;
  /** The tree an agent was shown. */
  readonly shown: Oid;
  /** Trees whose content is safe without the folder. */
  readonly known: readonly Oid[];
  /** False: the folder was being filled. */
  readonly filled: boolean;
  /** Stash entries that were there before the agent. */
  readonly stashes: readonly string[];
}

/** Reads the notes; `null` when there are none that can be read. */
export async function readFacts(path: string): Promise<Facts | null> {
  const text = (await readIfExists(path))?.toString();
  if (text === undefined) return null;
  try {
    return parseFacts(JSON.parse(text));
  } catch {
    return null; // Without them everything in the folder counts as unknown, and is saved.
  }
}

/** Replaces the notes. */
export async function writeFacts(path: string, facts: Facts): Promise<void> {
  await makeFolder(dirname(path));
  // A power cut may lose them: the folder's content is then unknown, which is the safe side.
  await writeAtomic(path, JSON.stringify(facts), { sync: false });
}

function parseFacts(value: unknown): Facts {
  if (typeof value !== 'object' || value === null) throw new Error('not an object');
  const record = new Map<string, unknown>(Object.entries(value));
  return {
    commit: parseOid(String(record.get('commit'))),
    shown: parseOid(String(record.get('shown'))),
    known: texts(record.get('known')).map(parseOid),
    filled: record.get('filled') === true,
    stashes: texts(record.get('stashes')),
  };
}

function texts(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.filter((one) => typeof one === 'string') : [];
}
