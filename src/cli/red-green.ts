/** Runs the tests of an Issue without its change, after everything else is green: the last word of its verifier. */
import type { Emit } from '../event.js';
import { verdictOf, type GateVerdict, type Verifier, type VerifyRequest } from '../gates/gate.js';
import { judgeRedGreen, redGreenName, testFile, type RedGreenRun } from '../gates/red-green.js';
import { blankVerdict } from '../gates/run.js';
import { teller } from '../gates/tell.js';
import type { Issue, Oid } from '../issue.js';
import type { Clock } from '../platform/clock.js';
import type { CommandGate, Policy } from '../policy.js';
import { codeTree } from '../store/tree.js';
import type { Git, TreeTarget } from '../worktree/git-types.js';

/** What it takes beyond the verifier of the run. */
export interface RedGreenPorts {
  readonly git: Git;
  readonly policy: Pick<Policy, 'evidence' | 'protect'>;
  readonly issues: () => readonly Issue[];
  readonly clock: Clock;
  readonly emit: Emit;
}

/** Adds red-green to a verifier, for the Issues that ask for it. */
export function withRedGreen(verifier: Verifier, ports: RedGreenPorts): Verifier {
  const tell = teller({ emit: ports.emit, baseline: () => null });
  return {
    async verify(request) {
      const verdict = await verifier.verify(request);
      const issue = ports.issues().find(({ id }) => id === request.issue);
      if (issue === undefined || request.scope !== 'issue' || request.subject === null) return verdict;
      const isAsked = ports.policy.evidence.proof !== null || issue.proof !== undefined;
      // Of work that is red for another reason nothing is to be shown yet.
      if (!isAsked || !verdict.passed) return verdict;
      const { base } = request.subject;
      const own = await prove({ verifier, ports, request, issue }, { work: verdict.gates, base });
      tell(request, own);
      return verdictOf([...verdict.gates, own], request.accepted);
    },
  };
}

interface Proving {
  readonly verifier: Verifier;
  readonly ports: RedGreenPorts;
  readonly request: VerifyRequest;
  readonly issue: Issue;
}

async function prove(
  proving: Proving,
  { work, base }: { readonly work: readonly GateVerdict[]; readonly base: Oid },
): Promise<GateVerdict> {
  const { ports, request, issue } = proving;
  const { git, policy, clock } = ports;
  const start = clock.monotonic();
  const isTest = testFile([...policy.protect.tests, ...issue.tests]);
  const baseCode = await codeTree(git, (await git.readCommit(base)).tree);
  const changes = (await git.diffTrees(baseCode, request.codeTree)).filter(({ path }) => isTest(path));
  const edits = new Map(
    changes.map(({ path, newMode, newOid }) => [path, newOid === null ? null : { mode: newMode, oid: newOid }]),
  );
  const runs = changes.length === 0 ? [] : await runsOf(proving, { work, baseCode, edits });
  const blank = { ...blankVerdict(redGreenGate), durationMs: Math.round(clock.monotonic() - start) };
  if (runs === null) {
    return { ...blank, cause: 'cancelled', findings: [{ message: 'red-green was stopped', gate: redGreenName }] };
  }
  const files = changes.map(({ path }) => path);
  const { cause, findings, shown } = judgeRedGreen(runs, files);
  return cause === null ? { ...blank, verdict: 'pass', shown } : { ...blank, cause, findings };
}

/** Never run as such: it stands for the demand, of which the hash goes with the verdict. */
const redGreenGate: CommandGate = {
  name: redGreenName,
  kind: 'command',
  run: 'new tests fail without the change',
  on: [],
  timeoutMs: 0,
  env: [],
  afterGreen: false,
  rules: { minTests: null, mustMatch: null, mustNotMatch: null, junit: null },
};

interface Trees {
  readonly work: readonly GateVerdict[];
  readonly baseCode: Oid;
  readonly edits: ReadonlyMap<string, TreeTarget | null>;
}

/** `null`: stopped. */
async function runsOf(
  { verifier, ports, request }: Proving,
  { work, baseCode, edits }: Trees,
): Promise<readonly RedGreenRun[] | null> {
  const gates = request.gates.filter((gate) => gate.kind === 'command');
  if (gates.length === 0) return [];
  const common = { ...request, scope: 'base', gates } as const;
  const base = await verifier.verify({ ...common, codeTree: baseCode });
  const tree = await ports.git.editTree(baseCode, edits);
  const probe = await verifier.verify({ ...common, codeTree: tree, probing: true });
  const all = [...base.gates, ...probe.gates];
  if (request.signal.aborted || all.some(({ cause }) => cause === 'cancelled')) return null;
  return gates.flatMap(({ name: gate }) => {
    const of = (verdicts: readonly GateVerdict[]): GateVerdict | undefined => verdicts.find((one) => one.gate === gate);
    const [one, two, three] = [of(base.gates), of(probe.gates), of(work)];
    if (one === undefined || two === undefined || three === undefined) return [];
    return [{ gate, base: one, probe: two, work: three }];
  });
}
