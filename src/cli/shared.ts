/** What every Spec of a run has a part in: the limits, the numbered slots, the pause of a usage limit. */
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import PQueue from 'p-queue';
import { RunBudget } from '../loop/budget.js';
import { Parking } from '../loop/parking.js';
import type { Clock } from '../platform/clock.js';
import { removeTree } from '../platform/folders.js';
import type { Budget } from '../policy.js';
import { AgentLimit } from '../scheduler/slots.js';
import { createSlots, slotOffset, type Slots } from '../worktree/slots.js';

/** The shared parts of a run. */
export interface Shared {
  readonly agents: AgentLimit;
  readonly gates: PQueue;
  readonly slots: Slots;
  /** The pause that all take who call a driver, by its name. */
  readonly parking: (driver: string) => Parking;
  readonly clock: Clock;
  /** What the run may spend on calls of models, and has spent. */
  readonly spending: RunBudget;
  close(): Promise<void>;
}

/** Makes them. `name`: the Spec, or the backlog; where ports are counted from depends on it. */
export async function openShared(request: {
  readonly commonDir: string;
  readonly name: string;
  readonly concurrency: number;
  readonly gates: number;
  readonly clock: Clock;
  /** Of money and tokens, for the whole run. */
  readonly limit: Budget['run'];
  /** See `AgentLimit`. */
  readonly onFree?: () => void;
}): Promise<Shared> {
  const temporary = await mkdtemp(join(tmpdir(), 'giro-'));
  const parkings = new Map<string, Parking>();
  const slots = createSlots({ temporary, offset: slotOffset(request.commonDir, request.name) });
  return {
    agents: new AgentLimit(request.concurrency, request.onFree),
    gates: new PQueue({ concurrency: request.gates }),
    slots,
    parking: (driver) => {
      const parking = parkings.get(driver) ?? new Parking(request.clock);
      parkings.set(driver, parking);
      return parking;
    },
    clock: request.clock,
    spending: new RunBudget(request.limit),
    async close() {
      await slots.close();
      await removeTree(temporary);
    },
  };
}
