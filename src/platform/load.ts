/** How busy the machine is: what a test that is red only sometimes should be read with. */
import { availableParallelism, loadavg } from 'node:os';

/** Processes that wanted to run, on average over the last minute, and how many can at once. */
export interface MachineLoad {
  readonly average: number;
  readonly processors: number;
}

/** Reads the load now. */
export function machineLoad(): MachineLoad {
  return { average: Math.round((loadavg()[0] ?? 0) * 100) / 100, processors: availableParallelism() };
}
