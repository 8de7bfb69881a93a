/** The driver for any program: prompt on stdin, work in the current folder, result by exit code and envelope. */
import { isAbsolute, resolve } from 'node:path';
import type { Ended } from '../event.js';
import type { Clock } from '../platform/clock.js';
import type { Confinement } from '../platform/confinement.js';
import type { Environment } from '../platform/environment.js';
import { readTail, sizeOf } from '../platform/files.js';
import { removeTree } from '../platform/folders.js';
import { runProcess } from '../platform/process.js';
import { tailLines } from '../platform/text.js';
import type { DriverDefinition } from '../policy.js';
import type { ActorResult, Driver, DriverRequest, EnvelopeContract } from './driver.js';
import {
  contradiction,
  envelopeBytes,
  firstKnown,
  readEnvelopeFile,
  readOutput,
  type EnvelopeReading,
} from './envelope.js';
import { judgeEnding, withLimit } from './result.js';
import type { Spent } from './spent.js';

/** What the driver needs beyond its request. */
export interface CommandPorts {
  readonly clock: Clock;
  /** Root of the user's checkout; a relative program is looked up from there, never from the worktree. */
  readonly repository: string;
  /** The driver's own variables, taken from giro's environment. */
  readonly environment: Environment;
  readonly confinement?: Confinement;
}

/** How much of the transcript's end goes into the outcome. */
const tailBytes = 8 * 1024;

/** While the agent runs, its envelope is looked for in this much of the output's end. */
const watchedBytes = 64 * 1024;

/** Creates the driver of a `command` definition. */
export function createCommandDriver(
  definition: Extract<DriverDefinition, { kind: 'command' }>,
  ports: CommandPorts,
): Driver {
  const [program, ...args] = definition.run;
  const argv = [locateProgram(program, ports.repository), ...args] as const;
  return {
    name: definition.name,
    async run<T>(request: DriverRequest, contract: EnvelopeContract<T>) {
      await removeTree(request.envelopeFile);
      const output = await openOutput(request);
      const standing = watchEnvelope(request, contract, { output, clock: ports.clock });
      const { ended, durationMs, met } = await runProcess({
        argv,
        cwd: request.folder,
        env: { ...ports.environment, ...request.environment },
        input: request.prompt,
        logFile: request.logFile,
        timeoutMs: request.timeoutMs,
        graceMs: request.graceMs,
        signal: request.signal,
        clock: ports.clock,
        // A file of this call alone: also what left the group is gone before its work is looked at.
        mark: [`GIRO_ENVELOPE=${request.envelopeFile}`],
        ...(ports.confinement === undefined ? {} : { confinement: ports.confinement }),
        watch: standing.check,
      });
      const said = await readAll(request, contract, output);
      const result = standing.settled(ended) ?? withLimit(judgeEnding(ended, said.reading, contract), met);
      const { usage, model } = said;
      return { result, ended, durationMs, tail: await transcriptTail(request.logFile), usage, model };
    },
  };
}

/** The end of a transcript, fit for a terminal. */
export async function transcriptTail(logFile: string): Promise<string> {
  return tailLines(await readTail(logFile, tailBytes), 40, tailBytes);
}

/** Files and programs of the worktree are the agent's: only the user's own checkout may name the program (L9). */
function locateProgram(program: string, repository: string): string {
  return program.includes('/') && !isAbsolute(program) ? resolve(repository, program) : program;
}

/** The envelope of the file, where there is one, else of the output; what it cost from whichever says so. */
async function readAll<T>(
  request: DriverRequest,
  contract: EnvelopeContract<T>,
  output: Output,
): Promise<Spent & { readonly reading: EnvelopeReading<T> }> {
  const file = await readEnvelopeFile(request.envelopeFile, contract);
  const printed = readOutput(await output.end(envelopeBytes), contract);
  return { reading: joined(file.reading, printed.reading, contract), ...firstKnown(file, printed) };
}

/** The file counts, unless whoever may say one thing only has printed another. */
function joined<T>(
  file: EnvelopeReading<T>,
  printed: EnvelopeReading<T>,
  { single }: Pick<EnvelopeContract<T>, 'single'>,
): EnvelopeReading<T> {
  if (file.kind === 'absent') return printed;
  if (!single || file.kind !== 'valid' || printed.kind !== 'valid') return file;
  return JSON.stringify(file.envelope) === JSON.stringify(printed.envelope) ? file : contradiction;
}

/** What the agent has printed so far, seen from its end. */
interface Output {
  size(): Promise<number>;
  end(maxBytes: number): Promise<string>;
}

/** What stood in the transcript before is not this agent's word. */
async function openOutput({ logFile, prompt }: DriverRequest): Promise<Output> {
  const before = await sizeOf(logFile);
  const size = async (): Promise<number> => (await sizeOf(logFile)) - before;
  return {
    size,
    end: async (maxBytes) => withoutEcho(await readTail(logFile, Math.min(maxBytes, await size())), prompt),
  };
}

/** Some programs show the prompt first. An example envelope in it must not be taken for the agent's own. */
function withoutEcho(output: string, prompt: string): string {
  const end = prompt.trimEnd().slice(-2000);
  // A few words could stand anywhere in an honest answer.
  if (end.length < 64) return output;
  const at = output.lastIndexOf(end);
  return at === -1 ? output : output.slice(at + end.length);
}

interface EnvelopeWatch<T> {
  readonly check: () => Promise<string | null>;
  /** The result, when it was this watch that ended the agent. */
  readonly settled: (ended: Ended) => ActorResult<T> | null;
}

/**
 * Notices an agent that has ended its work but not its process: the same valid envelope has stood for the whole grace, in the file or as
 * the very last thing of the output.
 */
function watchEnvelope<T>(
  { envelopeFile, graceMs }: DriverRequest,
  contract: EnvelopeContract<T>,
  { output, clock }: { readonly output: Output; readonly clock: Clock },
): EnvelopeWatch<T> {
  let seen: { readonly text: string; readonly since: number } | null = null;
  let printed: { readonly size: number; readonly reading: EnvelopeReading<T> } = {
    size: 0,
    reading: { kind: 'absent' },
  };
  let settled: { readonly envelope: T } | null = null;

  const lastPrinted = async (): Promise<EnvelopeReading<T>> => {
    const size = await output.size();
    if (size === printed.size) return printed.reading;
    const { reading, isLast } = readOutput(await output.end(watchedBytes), contract);
    printed = { size, reading: isLast ? reading : { kind: 'absent' } };
    return printed.reading;
  };

  const check = async (): Promise<string | null> => {
    const file = (await readEnvelopeFile(envelopeFile, contract)).reading;
    const reading = file.kind === 'absent' ? await lastPrinted() : file;
    if (reading.kind !== 'valid') {
      seen = null;
      return null;
    }
    const text = JSON.stringify(reading.envelope);
    const now = clock.monotonic();
    if (seen?.text !== text) seen = { text, since: now };
    if (now - seen.since < graceMs) return null;
    settled = { envelope: reading.envelope };
    return 'it gave its envelope, but did not exit';
  };

  return {
    check,
    settled: (ended) => (ended.kind === 'stalled' && settled !== null ? { kind: 'finished', ...settled } : null),
  };
}
