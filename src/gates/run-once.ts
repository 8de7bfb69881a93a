/** One run of a command gate in a checkout: what it printed, what it left behind, and what all that means. */
import type { Ended } from '../event.js';
import { failed } from '../failure.js';
import type { Evidence } from '../issue.js';
import { readTail, sizeOf } from '../platform/files.js';
import { hashFile } from '../platform/hash.js';
import { printable } from '../platform/text.js';
import type { CommandGate } from '../policy.js';
import { runCommandGate } from './command.js';
import { gateFinding, judgeGate, mayLack, type Red } from './finding.js';
import type { GateCheckout, VerifierPorts, VerifyRequest } from './gate.js';
import { clearReport, readReport, trackedName } from './report-file.js';
import type { Shell } from './shell.js';

/** How much of the output's end is read; colours and cursor movements are taken out of it. */
const outputBytes = 256 * 1024;

/** A command gate that is about to run. */
export interface Runner {
  readonly ports: VerifierPorts;
  readonly request: VerifyRequest;
  readonly gate: CommandGate;
  readonly checkout: GateCheckout;
  readonly shell: Shell;
}

/** One run of a gate, and what it means. */
export interface OneRun {
  /** `null`: green. */
  readonly red: Red | null;
  readonly ended: Ended;
  readonly durationMs: number;
  readonly evidence: Evidence | null;
  /** SHA-256 of the whole output. */
  readonly logHash: string | null;
  /** Why the checkout is of no use any more. */
  readonly lost: string | null;
}

/** Runs it to its end; the checkout is brought back after it. */
export async function runOnce({ ports, request, gate, checkout, shell }: Runner, log: string): Promise<OneRun> {
  const report = gate.rules.junit === null ? null : { folder: checkout.folder, path: gate.rules.junit };
  const isClear = report === null || (await clearReport(report));
  const { ended, durationMs, left, met } = await runCommandGate({
    gate,
    checkout,
    issue: request.issue,
    shell,
    environment: ports.environment(checkout.slot, gate),
    logFile: log,
    graceMs: ports.graceMs,
    signal: request.signal,
    clock: ports.clock,
    ...(ports.confinement === undefined ? {} : { confinement: ports.confinement }),
  });
  // The same file, and the same test, has the same name in every checkout.
  const output = (await readTail(log, outputBytes)).replaceAll(`${checkout.folder}/`, '');
  const isWhole = (await sizeOf(log)) <= outputBytes;
  const told =
    report === null ? null : isClear ? await readReport(report) : failed('cannot be reached inside the checkout');
  const evidence = told?.ok === true ? told.value : ports.readEvidence(output, isWhole);
  const back = await bringBack(checkout, ended);
  // A report that the repository tracks was removed above, or is written anew: that is what it is for.
  const changed = back.changed.filter((file) => report === null || file !== trackedName(report.path));
  const lacks = (mayLack(ended, output) ? await ports.lacks?.(checkout.folder) : null) ?? { names: [], install: null };
  const noReport = told?.ok === false ? told.failure : null;
  const red =
    judgeGate({ gate: gate.name, ended, met, changed, output, lacks, evidence, left, rules: gate.rules, noReport }) ??
    unreadable(gate.name, back.lost);
  return { red, ended, durationMs, evidence, logHash: await hashFile(log), lost: back.lost };
}

/** A gate runs foreign code, which may do anything to the folder: also make it unreadable. Then nothing more is proved in it. */
async function bringBack(
  checkout: GateCheckout,
  ended: Ended,
): Promise<{ readonly changed: readonly string[]; readonly lost: string | null }> {
  // Whoever gets the folder next brings it back; a stop should not wait for that.
  if (ended.kind === 'cancelled') return { changed: [], lost: null };
  try {
    const changed = await checkout.changedFiles();
    if (changed.length > 0) await checkout.restore();
    return { changed, lost: null };
  } catch (cause) {
    return { changed: [], lost: cause instanceof Error ? cause.message : String(cause) };
  }
}

function unreadable(gate: string, lost: string | null): Red | null {
  if (lost === null) return null;
  return { cause: 'errored', finding: gateFinding(gate, `left a checkout that cannot be read: ${printable(lost)}`) };
}
