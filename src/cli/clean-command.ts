/** The command line of `giro clean`; what it does is loaded when it runs. */
import { InvalidArgumentError, Option, type Command } from 'commander';
import type { ProcessEnd } from './options.js';
import type { Terminal } from './show.js';

/** What the commands share. */
interface CleanPorts {
  readonly end: (end: ProcessEnd) => void;
  readonly folder: Option;
  readonly terminal: Terminal;
}

/** Adds `giro clean`. */
export function addClean(program: Command, { end, folder, terminal }: CleanPorts): void {
  program
    .command('clean')
    .description('show what is left on this machine and remove what is safe to remove; lists and restores salvage')
    .argument('[spec...]', 'a Spec, all of them when absent; after --salvage also show, restore or drop')
    .option('-y, --yes', 'do not ask')
    .option('-n, --dry-run', 'only show it')
    .option('--save', 'also what holds work that is nowhere else: it is put under refs/giro/salvage first')
    .addOption(new Option('--logs <age>', 'also logs of runs that are older, such as 30d').argParser(parseAge))
    .option('--passes', 'also remembered passes of gates; the next run pays for them again')
    .option('--salvage', 'what was saved: list it, or show, restore and drop one')
    .option('--patch', 'with --salvage show: the whole diff')
    .option('--json', 'print it as JSON; removes only with --yes')
    .addOption(folder)
    .addHelpText('after', cleanHelp)
    .action(async (words: readonly string[], options: CleanFlags) => {
      const { salvage = false, yes = false, json = false, patch = false, directory } = options;
      if (salvage) {
        const { salvaged } = await import('./salvaged.js');
        end({ exit: await salvaged({ words, yes, json, patch, folder: directory }, terminal) });
        return;
      }
      const { clean } = await import('./clean.js');
      const { dryRun = false, save = false, passes = false, logs: logsMs = null } = options;
      end({ exit: await clean({ words, yes, dryRun, save, passes, logsMs, json, folder: directory }, terminal) });
    });
}

const cleanHelp = `
What a run goes on from stays, and what is in no commit is saved before it goes. Only folders that set-up or tools fill, such as
node_modules, go unsaved: they are named with their size.

Examples:
  giro clean                                   show it, and ask
  giro clean auth --yes                        of one Spec, without asking
  giro clean --logs 30d                        also logs of runs older than 30 days
  giro clean --dry-run --json                  for scripts
  giro clean auth --save                       also work that is nowhere else, saved first
  giro clean --salvage                         what was saved: when, of which Issue, why
  giro clean --salvage show auth/01-login/1    its files; with --patch the diff
  giro clean --salvage restore auth/01-login/1            onto a new branch
  giro clean --salvage restore auth/01-login/1 ../rescued into a new folder
  giro clean --salvage drop auth/01-login/1    throw it away`;

interface CleanFlags {
  readonly yes?: boolean;
  readonly dryRun?: boolean;
  readonly save?: boolean;
  readonly logs?: number;
  readonly passes?: boolean;
  readonly salvage?: boolean;
  readonly patch?: boolean;
  readonly json?: boolean;
  readonly directory: string;
}

function parseAge(text: string): number {
  const [, count = '', unit = ''] = /^([0-9]{1,5})([hdw])$/.exec(text) ?? [];
  if (count === '') throw new InvalidArgumentError('It must be an age such as 12h, 30d or 8w.');
  return Number(count) * { h: 1, d: 24, w: 168 }[unit as 'h' | 'd' | 'w'] * 3_600_000;
}
