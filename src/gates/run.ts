/** Runs gates one after the other in one checkout; each sees the tree as it was committed. */
import type { Ended } from '../event.js';
import type { Result } from '../failure.js';
import { readTail } from '../platform/files.js';
import { printable } from '../platform/text.js';
import type { GateDefinition } from '../policy.js';
import { runCommandGate } from './command.js';
import { gateFinding, judgeGate, mayLack, type Red } from './finding.js';
import type { GateCheckout, GateVerdict, VerifierPorts, VerifyRequest } from './gate.js';
import type { Shell } from './shell.js';

/** One due gate, with its verdict when that is known already. */
export interface DueGate {
  readonly gate: GateDefinition;
  readonly known: GateVerdict | null;
}

/** What running gates takes beyond the request. */
export interface Bench {
  readonly ports: VerifierPorts;
  /** Finds the shell, once for all gates. */
  readonly shell: (checkout: GateCheckout, gate: GateDefinition) => Promise<Result<Shell, string>>;
  /** Names a fresh file for the output of a gate. */
  readonly logFile: (request: VerifyRequest, gate: GateDefinition) => string;
  /** Told each verdict as soon as it stands. */
  readonly onVerdict: (gate: GateDefinition, verdict: GateVerdict) => Promise<void>;
}

/** How much of the output's end is read; colours and cursor movements are taken out of it. */
const outputBytes = 64 * 1024;

/** Brings every due gate to a verdict: a red one stops no other. */
export async function runGates(
  bench: Bench,
  request: VerifyRequest,
  { due, checkout }: { readonly due: readonly DueGate[]; readonly checkout: GateCheckout },
): Promise<readonly GateVerdict[]> {
  const verdicts: GateVerdict[] = [];
  let lost: string | null = null;
  for (const { gate, known } of due) {
    const run = (): Promise<GateRunEnd> => runGate(bench, { request, gate, checkout });
    const end: GateRunEnd = known === null ? await beforeRun(request, { gate, lost }, run) : { verdict: known, lost };
    lost = end.lost;
    verdicts.push(end.verdict);
    await bench.onVerdict(gate, end.verdict);
  }
  return verdicts;
}

/** The verdict of a gate that was stopped, or never began because the run was. */
export function cancelledVerdict(gate: GateDefinition): GateVerdict {
  return notRun(gate.name, { cause: 'cancelled', finding: gateFinding(gate.name, 'was stopped') });
}

/** The verdict of a gate that did not run. */
export function notRun(gate: string, { cause, finding }: Red, log: string | null = null): GateVerdict {
  return { gate, verdict: 'fail', cause, cached: false, ended: null, durationMs: 0, findings: [finding], log };
}

interface GateRunEnd {
  readonly verdict: GateVerdict;
  /** Why the checkout is of no use to the gates that follow. */
  readonly lost: string | null;
}

async function beforeRun(
  { signal }: VerifyRequest,
  { gate, lost }: { readonly gate: GateDefinition; readonly lost: string | null },
  run: () => Promise<GateRunEnd>,
): Promise<GateRunEnd> {
  if (signal.aborted) return { verdict: cancelledVerdict(gate), lost };
  if (lost === null) return run();
  return {
    verdict: notRun(gate.name, { cause: 'errored', finding: gateFinding(gate.name, `did not run: ${lost}`) }),
    lost,
  };
}

interface GatePlace {
  readonly request: VerifyRequest;
  readonly gate: GateDefinition;
  readonly checkout: GateCheckout;
}

async function runGate(bench: Bench, { request, gate, checkout }: GatePlace): Promise<GateRunEnd> {
  const { ports } = bench;
  const shell = await bench.shell(checkout, gate);
  if (!shell.ok) {
    const finding = gateFinding(gate.name, `could not start: ${shell.failure}`);
    return { verdict: notRun(gate.name, { cause: 'errored', finding }), lost: null };
  }
  const log = bench.logFile(request, gate);
  const { scope, issue, codeTree: tree, signal } = request;
  ports.emit({ type: 'gate.started', scope, gate: gate.name, issue, tree, log });
  const { ended, durationMs } = await runCommandGate({
    gate,
    checkout,
    issue,
    shell: shell.value,
    environment: ports.environment(checkout.slot, gate),
    logFile: log,
    graceMs: ports.graceMs,
    signal,
    clock: ports.clock,
  });
  const { changed, lost } = await bringBack(checkout, ended);
  const output = await readTail(log, outputBytes);
  const lacks = mayLack(ended, output) ? ((await ports.lacks?.(checkout.folder)) ?? []) : [];
  const red = judgeGate({ gate: gate.name, ended, changed, output, lacks }) ?? unreadable(gate.name, lost);
  const verdict = { gate: gate.name, cached: false, ended, durationMs, log } as const;
  return {
    verdict:
      red === null
        ? { ...verdict, verdict: 'pass', cause: null, findings: [] }
        : { ...verdict, verdict: 'fail', cause: red.cause, findings: [red.finding] },
    lost: lost === null ? null : `the checkout is of no use after gate ${gate.name}`,
  };
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
