/** Slots: what keeps agents and gates that run side by side apart, ports and temporary files (DESIGN 6). */
import { createHash, randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { kindOf, rename } from '../platform/files.js';
import { removeTree } from '../platform/folders.js';
import { makePrivateFolder } from '../platform/links.js';

/** One numbered place to work in; no two that are taken share anything. */
export interface Slot {
  readonly number: number;
  /** First of twenty ports that belong to the slot. */
  readonly portBase: number;
  /** A folder for `TMPDIR`, empty at the start of each use. */
  readonly temporary: string;
}

/** Which number a slot may have. */
export interface SlotWish {
  /** Taken when it is free. */
  readonly prefer?: number;
  readonly except?: ReadonlySet<number>;
}

/** One numbering for the worktrees and gate checkouts of a run. */
export interface Slots {
  /** Takes the smallest free number from 1. */
  take(wish?: SlotWish): Promise<Slot>;
  /** Empties the temporary folder, for another use of the slot. */
  renew(slot: Slot): Promise<void>;
  free(slot: Slot): void;
  /** Removes the temporary folders. */
  close(): Promise<void>;
}

const firstPort = 10_000;
const portsPerSlot = 20;
// The last port is 31,999: below the range from which systems pick ports for outgoing connections.
const portGroups = 1_100;

/** Where a run starts counting its ports: another place for each repository and Spec, so that two runs rarely meet. */
export function slotOffset(repository: string, spec: string): number {
  return createHash('sha256').update(`${repository}\0${spec}`).digest().readUInt32BE() % portGroups;
}

/** First port of a slot. */
export function portBase(offset: number, number: number): number {
  return firstPort + ((offset + number) % portGroups) * portsPerSlot;
}

/** Makes the slots of a run; `temporary` is a folder of its own, with a short path since sockets are put there. */
export function createSlots(request: { readonly temporary: string; readonly offset: number }): Slots {
  const taken = new Set<number>();
  const removals = new Set<Promise<void>>();

  // A process that outlived its use may still write there: it keeps the old folder, the next user gets another one.
  const empty = async (folder: string): Promise<void> => {
    if ((await kindOf(folder)) !== null) {
      const aside = join(request.temporary, `.old-${randomBytes(6).toString('hex')}`);
      await rename(folder, aside);
      removeLater(removals, aside);
    }
    await makePrivateFolder(folder);
  };

  return {
    async take(wish = {}) {
      const number = freeNumber(taken, wish);
      taken.add(number);
      const temporary = join(request.temporary, `slot-${String(number)}`);
      try {
        await empty(temporary);
      } catch (error) {
        taken.delete(number);
        throw error;
      }
      return { number, portBase: portBase(request.offset, number), temporary };
    },
    renew: (slot) => empty(slot.temporary),
    free(slot) {
      taken.delete(slot.number);
    },
    async close() {
      await Promise.all(removals);
      removeLater(removals, request.temporary);
      await Promise.all(removals);
    },
  };
}

function freeNumber(taken: ReadonlySet<number>, wish: SlotWish): number {
  if (wish.prefer !== undefined && wish.prefer >= 1 && !taken.has(wish.prefer)) return wish.prefer;
  let number = 1;
  while (taken.has(number) || wish.except?.has(number) === true) number += 1;
  return number;
}

function removeLater(removals: Set<Promise<void>>, path: string): void {
  const removal = removeTree(path)
    // What a process holds on to goes with the whole folder, or stays as litter in a temporary place.
    .catch(() => undefined)
    .finally(() => removals.delete(removal));
  removals.add(removal);
}
