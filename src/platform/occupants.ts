/** Which processes have their current folder somewhere: an editor, a shell, an agent that outlived its giro. */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';

/** A process that is in a folder. */
export interface Occupant {
  readonly pid: number;
  readonly name: string;
}

/** Finds the processes that are in a folder or below it; where the system does not show that, there is none. */
export function occupantsOf(folder: string): readonly Occupant[] {
  if (process.platform !== 'linux') return [];
  const pids = readdirSync('/proc').filter((name) => /^[0-9]+$/.test(name));
  return pids.flatMap((pid) => {
    try {
      const current = readlinkSync(`/proc/${pid}/cwd`);
      if (current !== folder && !current.startsWith(`${folder}/`)) return [];
      return [{ pid: Number(pid), name: readFileSync(`/proc/${pid}/comm`, 'utf8').trim() }];
    } catch {
      // Gone in this moment, or another user's.
      return [];
    }
  });
}
