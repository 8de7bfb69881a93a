/** Runs one `command` gate in a checkout. It only runs: `finding.ts` says what that means. */
import type { IssueId } from '../issue.js';
import type { Clock } from '../platform/clock.js';
import type { Confinement } from '../platform/confinement.js';
import type { Environment } from '../platform/environment.js';
import { runProcess, type ProcessResult } from '../platform/process.js';
import type { CommandGate } from '../policy.js';
import type { GateCheckout, GateSlot } from './gate.js';
import type { Shell } from './shell.js';

/** What running one gate takes. */
export interface GateRun {
  readonly gate: CommandGate;
  readonly checkout: GateCheckout;
  readonly issue: IssueId | null;
  readonly shell: Shell;
  /** The allow-list, the gate's own names and `GIRO_SPEC`; the rest is added here. */
  readonly environment: Environment;
  readonly logFile: string;
  readonly graceMs: number;
  readonly signal: AbortSignal;
  readonly clock: Clock;
  readonly confinement?: Confinement;
}

/** Runs the gate to its end: no terminal, nothing to read on stdin, and all that it started gone when it resolves. */
export async function runCommandGate(run: GateRun): Promise<ProcessResult> {
  const { gate, checkout } = run;
  return runProcess({
    argv: [...run.shell, gate.run],
    cwd: checkout.folder,
    env: gateEnvironment(run, checkout.slot),
    logFile: run.logFile,
    timeoutMs: gate.timeoutMs,
    graceMs: run.graceMs,
    signal: run.signal,
    clock: run.clock,
    ...(run.confinement === undefined ? {} : { confinement: run.confinement }),
    // What the set-up of the checkout left running is not the gate's.
    mark: [`TMPDIR=${checkout.slot.temporary}`, `GIRO_GATE=${gate.name}`],
  });
}

function gateEnvironment({ environment, gate, issue }: GateRun, slot: GateSlot): Environment {
  return {
    ...environment,
    CI: 'true',
    GIRO_GATE: gate.name,
    ...(issue === null ? {} : { GIRO_ISSUE: issue }),
    GIRO_SLOT: String(slot.number),
    GIRO_PORT_BASE: String(slot.portBase),
    TMPDIR: slot.temporary,
  };
}
