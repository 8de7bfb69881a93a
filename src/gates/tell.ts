/** Tells what a gate came to, and what of it a person should look at. */
import type { Evidence, IssueId } from '../issue.js';
import { fewerTests } from './baseline.js';
import type { GateVerdict, VerifierPorts, VerifyRequest } from './gate.js';

/** Makes the one who tells verdicts; the same warning is given once. */
export function teller(
  ports: Pick<VerifierPorts, 'emit' | 'baseline'>,
): (request: VerifyRequest, verdict: GateVerdict) => void {
  const said = new Set<string>();
  const sayFewer = (issue: IssueId | null, verdict: GateVerdict): void => {
    const message = fewerTests(ports.baseline(verdict.gate), verdict, issue);
    if (message === null || said.has(message)) return;
    said.add(message);
    ports.emit({ type: 'run.notice', level: 'warning', message, ...(issue === null ? {} : { issue }) });
  };
  return ({ scope, issue, codeTree: tree, probing }, verdict) => {
    const { gate, verdict: word, cause, cached, durationMs, ended, findings, evidence, waiver, judge, usage } = verdict;
    const told = {
      ...(cause === null ? {} : { cause }),
      ...(evidence === null ? {} : { evidence: withoutPasses(evidence) }),
      ...(judge === null ? {} : { driver: judge.driver, model: judge.model }),
      ...(usage === null ? {} : { usage }),
      ...(probing === true ? ({ probing } as const) : {}),
      ...(waiver === null ? {} : { waiver }),
    };
    const common = { scope, gate, issue, tree, verdict: word, cached, durationMs, ended, findings };
    ports.emit({ type: 'gate.finished', ...common, ...told });
    if (scope !== 'base') sayFewer(issue, verdict);
  };
}

/** Who passed is for comparing; an event says how many. */
function withoutPasses({ runner, tests, failed, skipped, failures }: Evidence): Evidence {
  return { runner, tests, failed, skipped, failures };
}
