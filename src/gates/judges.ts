/** The gates that judges decide, of one verification: after the command gates, one after the other, outside of their checkout. */
import { createHash } from 'node:crypto';
import type { JudgedGate } from '../policy.js';
import { definitionHash } from './definition.js';
import { gateFinding } from './finding.js';
import { isAllowed, isGreen, type GateVerdict, type VerifierPorts, type VerifyRequest } from './gate.js';
import { judge } from './judge.js';
import type { Brief, JudgePorts } from './judging.js';
import { blankVerdict, cancelledVerdict, notRun, type Bench } from './run.js';

/** The judges of a run, with the passes that hold within an attempt and its re-verify. They are in memory only. */
export interface Judges {
  /** Brings every gate to a verdict. `green`: all gates before them have passed. */
  judgeAll(
    bench: Bench,
    request: VerifyRequest,
    due: { gates: readonly JudgedGate[]; green: boolean },
  ): Promise<readonly GateVerdict[]>;
}

/** Makes the judges of a run; `null`: none are there, and a gate that asks for one is errored. */
export function createJudges(ports: VerifierPorts, judges: JudgePorts | null): Judges {
  const passes = new Map<string, GateVerdict>();

  const judgeOne = async (
    bench: Bench,
    request: VerifyRequest,
    { gate, brief, by }: { readonly gate: JudgedGate; readonly brief: Brief; readonly by: JudgePorts },
  ): Promise<GateVerdict> => {
    const key = passKey(request, gate, { brief, judges: by });
    const known = key === null ? undefined : passes.get(key);
    if (known !== undefined)
      return { ...known, cached: true, ended: null, durationMs: 0, log: null, logHash: null, usage: null };
    const verdict = await judge({ ports, judges: by, request, gate, brief, logFile: bench.logFile(request, gate) });
    if (key !== null && isGreen(verdict)) passes.set(key, verdict);
    return verdict;
  };

  return {
    async judgeAll(bench, request, { gates, green }) {
      const verdicts: GateVerdict[] = [];
      let brief: Brief | null = null;
      for (const gate of gates) {
        const mayRun = green && verdicts.every((verdict) => isAllowed(verdict, request.accepted));
        let verdict: GateVerdict;
        if (request.signal.aborted) verdict = cancelledVerdict(gate);
        else if (gate.afterGreen && !mayRun) verdict = { ...blankVerdict(gate), cause: 'not-run' };
        else if (judges === null) verdict = withoutJudge(gate);
        else
          verdict = await judgeOne(bench, request, {
            gate,
            by: judges,
            brief: (brief ??= await judges.brief(request)),
          });
        verdicts.push(verdict);
        await bench.onVerdict(gate, verdict);
      }
      return verdicts;
    },
  };
}

function withoutJudge(gate: JudgedGate): GateVerdict {
  return notRun(gate, { cause: 'errored', finding: gateFinding(gate.name, 'could not start: there is no judge') });
}

/** What a judge's pass depends on; `null`: it is not one of an attempt, and is not kept. */
function passKey(
  { codeTree, issue, attempt }: VerifyRequest,
  gate: JudgedGate,
  { brief, judges }: { readonly brief: Brief; readonly judges: JudgePorts },
): string | null {
  if (issue === null || attempt === null) return null;
  const { spec, issue: text, baseCode } = brief;
  const work = [codeTree, baseCode, issue, attempt, spec, text];
  return createHash('sha256')
    .update(JSON.stringify([...work, gate.name, definitionHash(gate), judges.driverHash]))
    .digest('hex');
}
