/** The command line of `giro doctor`; what it does is loaded when it runs. */
import type { Command, Option } from 'commander';
import type { ProcessEnd } from './options.js';
import type { Terminal } from './show.js';

/** What the commands share. */
interface DoctorPorts {
  readonly end: (end: ProcessEnd) => void;
  readonly folder: Option;
  readonly terminal: Terminal;
}

/** Adds `giro doctor`. */
export function addDoctor(program: Command, { end, folder, terminal }: DoctorPorts): void {
  program
    .command('doctor')
    .description('show what this machine and repository can do for giro, and what to do where they cannot')
    .option('--json', 'print it as JSON')
    .addOption(folder)
    .addHelpText(
      'after',
      `
It starts no agent and no gate, writes nothing and takes no lock; it works outside of a repository too. Exit 0 when nothing
is a problem, else 1. A note does not keep giro from working.

Examples:
  giro doctor
  giro doctor -C ~/project
  giro doctor --json`,
    )
    .action(async (options: { readonly json?: boolean; readonly directory: string }) => {
      const { doctor } = await import('./doctor.js');
      end({ exit: await doctor({ json: options.json ?? false, folder: options.directory }, terminal) });
    });
}
