/** The command line: what there is, and nothing loaded before it is needed. The only place that ends the process. */
import { Command, InvalidArgumentError, Option } from 'commander';
import { parseDuration } from '../platform/duration.js';
import { keepHeapSmall } from '../platform/heap.js';
import { addClean } from './clean-command.js';
import { crashText } from './crash-text.js';
import { addDoctor } from './doctor-command.js';
import { deadlineFor, deadlineUntil, type Deadline } from './deadline.js';
import type { ExitCode } from './exit.js';
import { exitCodes, exitHelp } from './exit.js';
import type { ProcessEnd } from './options.js';
import type { Terminal } from './show.js';
import { giroVersion } from './version.js';

const terminal: Terminal = { stdout: process.stdout, stdin: process.stdin, env: { ...process.env } };

/** Takes how the process is to end. */
type End = (end: ProcessEnd) => void;

/** Builds the commands. Each loads its own module when it runs. */
function commands(end: End): Command {
  const program = new Command('giro')
    .description('Turns a Spec in markdown into integrated, verified work by AI coding agents.')
    .version(giroVersion, '-V, --version', 'print the version')
    .helpOption('-h, --help', 'print this help')
    .configureHelp({ showGlobalOptions: true })
    .addHelpText(
      'after',
      `
Examples:
  giro demo                          see the whole engine on a made-up repository
  giro init                          write giro.toml and an example Spec here
  giro implement auth                run docs/specs/auth to the end
  giro implement auth --dry-run      show the plan, spend nothing
  giro implement auth -c 8 --json    eight agents at once, events as NDJSON
  giro implement docs/specs --for 6h every Spec, by what they depend on and by value
  giro status auth                   where everything stands, and why
  giro proof auth                    check the proof again, offline
  giro answer auth/03 "use cookies"  answer what an Issue asks
  giro stop                          stop what runs; the same command goes on from there
  giro clean                         remove what is safe to remove, with a question
  giro doctor                        what this machine can do, and what it lacks

${exitHelp}`,
    );
  addImplement(program, end);
  addStatus(program, end);
  addProof(program, end);
  addAnswer(program, end);
  addStop(program, end);
  addClean(program, { end, folder: folder(), terminal });
  addDoctor(program, { end, folder: folder(), terminal });
  addInit(program, end);
  addDemo(program, end);
  return program;
}

function folder(): Option {
  return new Option('-C, --directory <dir>', 'run as if started in <dir>').default('.', 'here');
}

function addImplement(program: Command, end: End): void {
  program
    .command('implement')
    .description('run a Spec, one of its Issues or all Specs until they are proved or a person is needed')
    .argument(
      '<target>',
      'a Spec (auth, docs/specs/auth), an Issue (auth/03, docs/specs/auth/issues/03-login.md) or all Specs (docs/specs)',
    )
    .addOption(
      new Option('-c, --concurrency <N>', 'agents at once, a whole number of 1 or more').argParser(parseConcurrency),
    )
    .addOption(
      new Option('--max-cost <USD>', 'the most this run may cost; tightens [budget] run-cost').argParser(parseCost),
    )
    .addOption(
      new Option('--until <HH:MM>', 'be over by then: the next such time, on the clock here')
        .argParser(parseUntil)
        .conflicts('for'),
    )
    .addOption(new Option('--for <duration>', 'be over after so long, such as 6h or 1h30m').argParser(parseFor))
    .option('--json', 'write the events as NDJSON; stdout holds nothing else')
    .option('--plain', 'one line per event, also on a terminal')
    .option('-n, --dry-run', 'show the plan, the waves, the gates and the budget; spend and write nothing')
    .option('-q, --quiet', 'only what landed, what needs a person, and the end')
    .option('--verbose', 'every event')
    .addOption(folder())
    .addHelpText(
      'after',
      `\nExamples:\n  giro implement auth\n  giro implement docs/specs/auth --concurrency 8\n  giro implement auth/03-login\n  giro implement docs/specs --until 07:00\n\n${exitHelp}`,
    )
    .action(async (target: string, options: ImplementFlags) => {
      keepHeapSmall();
      const { implement } = await import('./implement.js');
      end(
        await implement(
          {
            target,
            concurrency: options.concurrency ?? null,
            maxCost: options.maxCost ?? null,
            json: options.json ?? false,
            plain: options.plain ?? false,
            dryRun: options.dryRun ?? false,
            quiet: options.quiet ?? false,
            verbose: options.verbose ?? false,
            folder: options.directory,
            deadline: options.until ?? options.for ?? null,
          },
          terminal,
        ),
      );
    });
}

function addStatus(program: Command, end: End): void {
  program
    .command('status')
    .description('show where everything stands, from git alone; starts nothing')
    .argument('[target]', 'a Spec or an Issue; all Specs when absent')
    .option('--json', 'print it as JSON')
    .addOption(folder())
    .addHelpText(
      'after',
      '\nExamples:\n  giro status\n  giro status auth\n  giro status auth/03\n  giro status auth --json',
    )
    .action(async (target: string | undefined, options: { readonly json?: boolean; readonly directory: string }) => {
      // Git answers while the rest is loaded: together they are most of what a short command costs.
      const { openGit } = await import('../worktree/git.js');
      const opening = openGit({ folder: options.directory, own: terminal.env, runFolder: null });
      const { status } = await import('./status.js');
      end({
        exit: await status(
          { target: target ?? null, json: options.json ?? false, folder: options.directory },
          { terminal, opening },
        ),
      });
    });
}

function addProof(program: Command, end: End): void {
  program
    .command('proof')
    .description('check a proof again, offline; exit 0 only if it holds for the current tip of giro/<spec>')
    .argument('<target>', 'a Spec or an Issue')
    .option('--rerun', 'run the command gates again on a clean checkout of the tip')
    .option('--json', 'print checks and proof as JSON')
    .addOption(folder())
    .addHelpText(
      'after',
      '\nExamples:\n  giro proof auth\n  giro proof auth --rerun\n  giro proof auth/03\n  giro proof auth --json',
    )
    .action(
      async (
        target: string,
        options: { readonly rerun?: boolean; readonly json?: boolean; readonly directory: string },
      ) => {
        const { proof } = await import('./proof.js');
        const { rerun = false, json = false } = options;
        end({ exit: await proof({ target, rerun, json, folder: options.directory }, terminal) });
      },
    );
}

function addAnswer(program: Command, end: End): void {
  program
    .command('answer')
    .description('answer an Issue (or a Spec) that needs a human; without a text, in your editor')
    .argument('<target>', 'an Issue (auth/03, auth/03-login, its path) or a Spec (auth)')
    .argument('[text...]', 'what the next attempt is told')
    .showHelpAfterError(
      '(a text that begins with a dash stands behind --, as in: giro answer auth/03 -- "- use cookies")',
    )
    .option('--retry', 'try again as it is, with the whole budget')
    .option('--accept <finding...>', 'findings that no longer block it, by the ids in brackets: waivers')
    .option('--wontfix', 'give the Issue up; refused while others depend on it')
    .option('--json', 'print what was done as JSON')
    .addOption(folder())
    .addHelpText(
      'after',
      `
The answer is a commit on giro/<spec>. The next run takes it up; one that is running, within seconds.

Examples:
  giro answer auth/03                             write it in $EDITOR, with the packet in view
  giro answer auth/03 "Use the session cookie."   the next attempt is told, with the whole budget
  giro answer auth/03 --retry                     the trouble was around it, and is gone
  giro answer auth/03 --accept 1a2b3c4d           that finding does not block any more
  giro answer auth/03 "Not now." --wontfix        give it up
  giro answer auth/03 -- "- one"                  a text that begins with a dash
  giro answer auth "Leave the mail to another Spec."`,
    )
    .action(async (target: string, text: readonly string[], options: AnswerFlags) => {
      const { answer } = await import('./answer.js');
      end({
        exit: await answer(
          {
            target,
            text,
            wontfix: options.wontfix ?? false,
            retry: options.retry ?? false,
            accept: options.accept ?? [],
            json: options.json ?? false,
            folder: options.directory,
          },
          terminal,
        ),
      });
    });
}

function addStop(program: Command, end: End): void {
  program
    .command('stop')
    .description('stop what runs in good order: agents are ended, all is saved, the same command goes on')
    .argument('[target]', 'a Spec; whatever runs in this repository when absent')
    .option('--now', 'without the grace for agents; a giro that does not answer is ended by force')
    .addOption(
      new Option('--wait <duration>', 'how long to wait for the end').argParser(parseWait).default(120_000, '2m'),
    )
    .option('--json', 'print what was stopped as JSON')
    .addOption(folder())
    .addHelpText(
      'after',
      `
It waits until what it stopped has ended; Ctrl+C ends the waiting, not the stopping. Nothing to stop is exit 0 too,
what has not ended in time is 1. The run that was stopped exits 2.

To keep giro from starting at all, lay down a file; remove it to go on:
  touch "$(git rev-parse --git-common-dir)/giro/STOP"        all of this repository
  touch "$(git rev-parse --git-common-dir)/giro/STOP.auth"   one Spec

Examples:
  giro stop                  whatever runs in this repository, from any folder or worktree of it
  giro stop auth             one Spec; a backlog goes on with the others
  giro stop --now            at once
  giro stop --wait 10m       agents and large worktrees take their time`,
    )
    .action(async (target: string | undefined, options: StopFlags) => {
      const { stop } = await import('./stop.js');
      const { now = false, json = false, wait, directory } = options;
      end({ exit: await stop({ target: target ?? null, now, json, waitMs: wait, folder: directory }, terminal) });
    });
}

interface StopFlags {
  readonly now?: boolean;
  readonly json?: boolean;
  readonly wait: number;
  readonly directory: string;
}

function addInit(program: Command, end: End): void {
  program
    .command('init')
    .description('write giro.toml and an example Spec; touches nothing that exists')
    .addOption(folder())
    .action(async (options: { readonly directory: string }) => {
      const { runInit } = await import('./init.js');
      const exit = await runInit({
        folder: options.directory,
        own: terminal.env,
        print: (line) => {
          process.stdout.write(`${line}\n`);
        },
        complain: (line) => {
          process.stderr.write(`${line}\n`);
        },
      });
      end({ exit: exit === 0 ? exitCodes.proof : exitCodes.error });
    });
}

function addDemo(program: Command, end: End): void {
  program
    .command('demo')
    .description('run the whole engine on a made-up repository; needs no agent and no key')
    .option('--plain', 'one line per event, also on a terminal')
    .option('--json', 'write the events as NDJSON')
    .option('--fast', 'without the pauses that let a person watch')
    .action(async (options: { readonly plain?: boolean; readonly json?: boolean; readonly fast?: boolean }) => {
      const { demo } = await import('./demo.js');
      end(
        await demo(
          { plain: options.plain ?? false, json: options.json ?? false, fast: options.fast ?? false },
          terminal,
        ),
      );
    });
}

interface AnswerFlags {
  readonly wontfix?: boolean;
  readonly retry?: boolean;
  readonly accept?: readonly string[];
  readonly json?: boolean;
  readonly directory: string;
}

interface ImplementFlags {
  readonly until?: Deadline;
  readonly for?: Deadline;
  readonly concurrency?: number;
  readonly maxCost?: number;
  readonly json?: boolean;
  readonly plain?: boolean;
  readonly dryRun?: boolean;
  readonly quiet?: boolean;
  readonly verbose?: boolean;
  readonly directory: string;
}

function parseConcurrency(text: string): number {
  const value = /^[0-9]+$/.test(text) ? Number(text) : 0;
  if (!Number.isSafeInteger(value) || value < 1)
    throw new InvalidArgumentError('It must be a whole number of 1 or more.');
  return value;
}

function parseCost(text: string): number {
  const value = /^[0-9]{1,7}(?:\.[0-9]{1,4})?$/.test(text) ? Number(text) : 0;
  if (value < 0.1) throw new InvalidArgumentError('It must be an amount in USD of 0.10 or more, such as 20 or 2.50.');
  return value;
}

function parseUntil(text: string): Deadline {
  const deadline = deadlineUntil(text, Date.now());
  if (deadline === undefined) throw new InvalidArgumentError('It must be a time of day such as 07:00 or 22:30.');
  return deadline;
}

function parseFor(text: string): Deadline {
  const deadline = deadlineFor(text, Date.now());
  if (deadline === undefined)
    throw new InvalidArgumentError('It must be a duration of at most 7 days, such as 30m, 6h or 1h30m.');
  return deadline;
}

function parseWait(text: string): number {
  const ms = parseDuration(text);
  if (ms === undefined) throw new InvalidArgumentError('It must be a duration such as 30s, 5m or 1h.');
  return ms;
}

function endProcess(end: ProcessEnd): void {
  if ('exit' in end) {
    process.exitCode = end.exit;
    // All is written and closed: what Node would still wait for, such as a child that is going, has nothing to say.
    process.stdout.write('', () => {
      process.exit(end.exit);
    });
    return;
  }
  process.kill(process.pid, end.signal);
}

function crash(error: unknown): void {
  // Whatever the board was doing: what follows must be seen.
  if (process.stdout.isTTY) process.stdout.write('\u001b[0m\u001b[?7h\u001b[?25h\u001b[?1049l');
  process.stderr.write(`${crashText(error)}\n`);
  process.exit(exitCodes.error satisfies ExitCode);
}

process.on('uncaughtException', crash);
process.stdout.on('error', () => undefined);
try {
  await commands(endProcess).parseAsync(process.argv);
} catch (error) {
  crash(error);
}
