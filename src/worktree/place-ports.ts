/** What a folder for agents needs, is asked for, and gives back. */
import type { Finding, IssueId, Oid, SpecSlug } from '../issue.js';
import type { Clock } from '../platform/clock.js';
import type { Git } from './git-types.js';
import type { Setup, Vacate } from './setup.js';
import type { Slot, Slots } from './slots.js';
import type { Stray } from './traces.js';

/** Content that the files do not have, saved. */
export interface SavedStray extends Stray {
  /** Where it is kept. */
  readonly ref: string;
}

/** What an agent left. */
export interface TakenBack {
  /** Everything that is not ignored; `null` when something in it cannot or must not be added. */
  readonly tree: Oid | null;
  /** What is wrong with the folder itself; never empty when there is no tree. */
  readonly refused: readonly Finding[];
  /** Subjects of commits it made that its HEAD contains, oldest first. */
  readonly subjects: readonly string[];
  readonly elsewhere: readonly SavedStray[];
  /** The tree that giro put there; `null`: nobody knows. */
  readonly shown: Oid | null;
}

/** What a folder is wanted for. */
export interface Order {
  readonly issue: IssueId;
  readonly commit: Oid;
  /** The tree to show; not always the commit's own. */
  readonly files: Oid;
}

/** What a folder needs of the world. */
export interface PlacePorts {
  readonly git: Git;
  readonly spec: SpecSlug;
  readonly slots: Slots;
  readonly setup: Setup;
  readonly vacate: Vacate;
  readonly clock: Pick<Clock, 'now'>;
  readonly notice: (message: string, issue?: IssueId) => void;
}

/** Where a folder is, and who has it. */
export interface PlaceOrigin {
  readonly folder: string;
  readonly adminDir: string;
  readonly slot: Slot;
  readonly issue: IssueId;
}
