/** Runs gates one after the other in one checkout; each sees the tree as it was committed. */
import type { Result } from '../failure.js';
import type { GateDefinition } from '../policy.js';
import { definitionHash } from './definition.js';
import { gateFinding, type Red } from './finding.js';
import { isAllowed, type GateCheckout, type GateVerdict, type VerifierPorts, type VerifyRequest } from './gate.js';
import { runOnce } from './run-once.js';
import { settle } from './settle.js';
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

/** Brings every due gate to a verdict: a red one stops no other. */
export async function runGates(
  bench: Bench,
  request: VerifyRequest,
  { due, checkout }: { readonly due: readonly DueGate[]; readonly checkout: GateCheckout },
): Promise<readonly GateVerdict[]> {
  const verdicts: GateVerdict[] = [];
  const allows = (verdict: GateVerdict): boolean => isAllowed(verdict, request.accepted);
  let lost: string | null = null;
  for (const { gate, known } of due) {
    const run = (): Promise<GateRunEnd> => runGate(bench, { request, gate, checkout });
    const end = await endOf(request, { gate, known, lost, green: verdicts.every(allows) }, run);
    lost = end.lost;
    verdicts.push(end.verdict);
    await bench.onVerdict(gate, end.verdict);
  }
  return verdicts;
}

/** The verdict of a gate that was stopped, or never began because the run was. */
export function cancelledVerdict(gate: GateDefinition): GateVerdict {
  return notRun(gate, { cause: 'cancelled', finding: gateFinding(gate.name, 'was stopped') });
}

/** The verdict of a gate that did not run. */
export function notRun(gate: GateDefinition, { cause, finding }: Red, log: string | null = null): GateVerdict {
  return { ...blankVerdict(gate), cause, findings: [finding], log };
}

/** A verdict of which nothing is known yet; it is a fail (L4). */
export function blankVerdict(gate: GateDefinition): GateVerdict {
  return {
    gate: gate.name,
    verdict: 'fail',
    cause: null,
    cached: false,
    ended: null,
    durationMs: 0,
    findings: [],
    log: null,
    logHash: null,
    definition: definitionHash(gate),
    evidence: null,
    waiver: null,
    judge: null,
    usage: null,
  };
}

interface GateRunEnd {
  readonly verdict: GateVerdict;
  /** Why the checkout is of no use to the gates that follow. */
  readonly lost: string | null;
}

interface BeforeGate extends DueGate {
  readonly lost: string | null;
  /** Every gate before it has passed. */
  readonly green: boolean;
}

async function endOf(
  { signal }: VerifyRequest,
  { gate, known, lost, green }: BeforeGate,
  run: () => Promise<GateRunEnd>,
): Promise<GateRunEnd> {
  if (known !== null) return { verdict: known, lost };
  if (signal.aborted) return { verdict: cancelledVerdict(gate), lost };
  // What is not run says nothing of the work, so it is no finding for anybody.
  if (gate.afterGreen && !green) return { verdict: { ...blankVerdict(gate), cause: 'not-run' }, lost };
  if (lost === null) return run();
  return {
    verdict: notRun(gate, { cause: 'errored', finding: gateFinding(gate.name, `did not run: ${lost}`) }),
    lost,
  };
}

interface GatePlace {
  readonly request: VerifyRequest;
  readonly gate: GateDefinition;
  readonly checkout: GateCheckout;
}

async function runGate(bench: Bench, place: GatePlace): Promise<GateRunEnd> {
  const { ports } = bench;
  const { request, gate, checkout } = place;
  if (gate.kind !== 'command') throw new Error(`gate ${gate.name} is not a command`);
  const shell = await bench.shell(checkout, gate);
  if (!shell.ok) {
    const finding = gateFinding(gate.name, `could not start: ${shell.failure}`);
    return { verdict: notRun(gate, { cause: 'errored', finding }), lost: null };
  }
  const log = bench.logFile(request, gate);
  const { scope, issue, codeTree: tree } = request;
  const probing = request.probing === true ? ({ probing: true } as const) : {};
  ports.emit({ type: 'gate.started', scope, gate: gate.name, issue, tree, log, ...probing });
  checkout.enter();
  const runner = { ports, request, gate, checkout, shell: shell.value };
  const first = await runOnce(runner, log);
  const { red, waiver, lost } = await settle(runner, first, () => bench.logFile(request, gate));
  const { ended, durationMs, evidence, logHash } = first;
  const verdict = { ...blankVerdict(gate), ended, durationMs, log, logHash, evidence, waiver };
  return {
    verdict: red === null ? { ...verdict, verdict: 'pass' } : { ...verdict, cause: red.cause, findings: [red.finding] },
    lost: lost === null ? null : `the checkout is of no use after gate ${gate.name}`,
  };
}
