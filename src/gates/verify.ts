/**
 * Judges a code tree by the gates that are due on it.
 *
 * 1. Every due gate comes to a verdict; none is passed over because another is red.
 * 2. Nothing leads to a pass but an exit with 0 on an unchanged tree, now or before; `isPassed` decides.
 * 3. The same gates on the same tree never run twice at the same moment, and a pass is not paid for twice.
 */
import { join } from 'node:path';
import type { Result } from '../failure.js';
import type { Evidence } from '../issue.js';
import type { GateDefinition } from '../policy.js';
import { gateFinding, type Red } from './finding.js';
import { createJudges } from './judges.js';
import type { JudgePorts } from './judging.js';
import {
  isAllowed,
  isGreen,
  verdictOf,
  type GateVerdict,
  type SetupFailure,
  type Verdict,
  type Verifier,
  type VerifierPorts,
  type VerifyRequest,
} from './gate.js';
import { blankVerdict, cancelledVerdict, notRun, runGates, type Bench, type DueGate } from './run.js';
import { findShell, type Shell } from './shell.js';
import { teller } from './tell.js';

/** Creates the verifier of a run. */
export function createVerifier(ports: VerifierPorts, judges: JudgePorts | null = null): Verifier {
  const verification = verifications(ports, judges);
  const running = new Map<string, Promise<Verdict>>();

  return {
    async verify(request) {
      if (request.gates.length === 0) throw new Error('no gate is due: an empty list must never count as a pass');
      const keys = request.gates.map((gate) => verification.keyOf(request, gate));
      // Which gates run after green depends on what counts as green here.
      const waivers = request.gates.some((gate) => gate.afterGreen) ? [...(request.accepted ?? [])].sort() : [];
      const key = [...keys, ...waivers].join(' ');
      // Nothing is awaited between looking and setting, so that two calls at once cannot both find nobody.
      for (let other = running.get(key); other !== undefined; other = running.get(key)) {
        const verdict = await unlessAborted(other, request.signal);
        if (verdict === null) return verification.report(request, request.gates.map(cancelledVerdict));
        // The other may have been stopped for a reason of its own; then the gates are still due here.
        if (!verdict.gates.some((gate) => gate.cause === 'cancelled')) {
          return verification.report(request, verdict.gates.map(paidBefore));
        }
      }
      const own = verification.run(request).finally(() => running.delete(key));
      running.set(key, own);
      return own;
    },
  };
}

interface Verifications {
  keyOf(request: VerifyRequest, gate: GateDefinition): string;
  run(request: VerifyRequest): Promise<Verdict>;
  /** Tells of gates that need not run. */
  report(request: VerifyRequest, gates: readonly GateVerdict[]): Verdict;
}

function verifications(ports: VerifierPorts, judgePorts: JudgePorts | null): Verifications {
  const logFile = logNames(ports.logFolder);
  const shell = shellOf(ports);
  const judges = createJudges(ports, judgePorts);

  const keyOf = (request: VerifyRequest, gate: GateDefinition): string => keyWith(ports, request, gate);
  const lookUp = (request: VerifyRequest): Promise<readonly DueGate[]> => knownOf(ports, request);
  const tell = teller(ports);

  const report = (request: VerifyRequest, gates: readonly GateVerdict[]): Verdict => {
    gates.forEach((gate) => tell(request, gate));
    return verdictOf(gates, request.accepted);
  };

  const keep = async (request: VerifyRequest, gate: GateDefinition, verdict: GateVerdict): Promise<void> => {
    if (verdict.cached || gate.kind !== 'command' || !isGreen(verdict)) return;
    const { codeTree } = request;
    const { durationMs, evidence } = verdict;
    const record = { gate: gate.name, codeTree, at: ports.clock.iso(), durationMs, evidence };
    await ports.cache.put(keyOf(request, gate), record);
  };

  const bench = (request: VerifyRequest): Bench => ({
    ports,
    shell,
    logFile,
    onVerdict: async (gate, verdict) => {
      await keep(request, gate, verdict);
      tell(request, verdict);
    },
  });

  const commandsInSlot = async (request: VerifyRequest): Promise<readonly GateVerdict[]> => {
    // While this waited for room, somebody else may have paid for the same pass.
    const due = (await lookUp(request)).filter(({ gate }) => gate.kind === 'command');
    if (!request.signal.aborted) return runCommands(request, due);
    return report(
      request,
      due.map(({ gate, known }) => known ?? cancelledVerdict(gate)),
    ).gates;
  };

  const runCommands = async (request: VerifyRequest, due: readonly DueGate[]): Promise<readonly GateVerdict[]> => {
    const known = allKnown(due);
    if (known !== null) return report(request, known).gates;
    const outcome = await ports.withCheckout(request.codeTree, (checkout) =>
      runGates(bench(request), request, { due, checkout }),
    );
    return outcome.ok ? outcome.value : report(request, withoutCheckout(request, due, outcome.failure)).gates;
  };

  const run = async (request: VerifyRequest): Promise<Verdict> => {
    const known = allKnown(await lookUp(request));
    if (known !== null) return report(request, known);
    // What waits to land goes first: Issues that depend on it can start then.
    const commands = await ports.slots(() => commandsInSlot(request), request.scope !== 'issue');
    const gates = request.gates.flatMap((gate) => (gate.kind === 'command' ? [] : [gate]));
    if (gates.length === 0) return verdictOf(commands, request.accepted);
    // Each call of a judge waits for room of its own, so that a judge who has to pause takes it from nobody.
    const green = commands.every((verdict) => isAllowed(verdict, request.accepted));
    const judged = await judges.judgeAll(bench(request), request, { gates, green });
    return verdictOf([...commands, ...judged], request.accepted);
  };

  return { keyOf, run, report };
}

function keyWith(ports: VerifierPorts, request: VerifyRequest, gate: GateDefinition): string {
  const key = ports.passKey({ codeTree: request.codeTree, gate, toolFingerprint: ports.toolFingerprint });
  if (gate.kind === 'command') return key;
  // Two Issues with the same code are still two questions to a judge.
  const { issue, attempt, subject } = request;
  return [key, issue, attempt, subject?.commit, subject?.base].join(':');
}

function knownOf(ports: VerifierPorts, request: VerifyRequest): Promise<readonly DueGate[]> {
  return Promise.all(
    request.gates.map(async (gate) => {
      // What a judge said is not for later runs: it holds within its attempt, and the judges know it.
      if (gate.kind !== 'command') return { gate, known: null };
      const record = await ports.cache.get(keyWith(ports, request, gate));
      return { gate, known: record === null ? null : cachedPass(gate, record.evidence) };
    }),
  );
}

function allKnown(due: readonly DueGate[]): readonly GateVerdict[] | null {
  const known = due.flatMap((one) => (one.known === null ? [] : [one.known]));
  return known.length === due.length ? known : null;
}

function cachedPass(gate: GateDefinition, evidence: Evidence | null): GateVerdict {
  return { ...blankVerdict(gate), verdict: 'pass', cached: true, evidence };
}

/** What another verification found: its passes are paid for, its reds are red here too. */
function paidBefore(verdict: GateVerdict): GateVerdict {
  if (!isGreen(verdict)) return { ...verdict, usage: null };
  return { ...verdict, cached: true, ended: null, durationMs: 0, log: null, logHash: null, usage: null };
}

/** Without a checkout no gate says anything. The output is shown once, not with each gate. */
function withoutCheckout(
  { signal }: VerifyRequest,
  due: readonly DueGate[],
  { message, tail, log }: SetupFailure,
): readonly GateVerdict[] {
  if (signal.aborted) return due.map(({ gate, known }) => known ?? cancelledVerdict(gate));
  const first = due.find(({ known }) => known === null)?.gate;
  return due.map(({ gate, known }) => {
    if (known !== null) return known;
    const what = `did not run: ${message}; [worktree] setup runs in a clean checkout, which has only committed files`;
    const red: Red = { cause: 'errored', finding: gateFinding(gate.name, what, gate === first ? tail : '') };
    return notRun(gate, red, log);
  });
}

function shellOf(ports: VerifierPorts): Bench['shell'] {
  let found: Promise<Result<Shell, string>> | undefined;
  return (checkout, gate) => (found ??= findShell(ports.environment(checkout.slot, gate)));
}

/** A gate may run several times for one attempt; none writes into another's file. */
function logNames(folder: string): Bench['logFile'] {
  const used = new Map<string, number>();
  return ({ scope, issue, attempt }, { name }) => {
    const step = attempt === null ? scope : `${scope}-${String(attempt)}`;
    const stem = `${issue ?? 'spec'}.${step}.${name.replace(/[^\w.-]/g, '_').slice(0, 60)}`;
    const count = (used.get(stem) ?? 0) + 1;
    used.set(stem, count);
    return join(folder, `${stem}${count === 1 ? '' : `.${String(count)}`}.log`);
  };
}

function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T | null> {
  if (signal.aborted) return Promise.resolve(null);
  return new Promise((resolve, reject) => {
    const stop = (): void => {
      resolve(null);
    };
    signal.addEventListener('abort', stop, { once: true });
    promise.then(resolve, reject).finally(() => {
      signal.removeEventListener('abort', stop);
    });
  });
}
