/** `giro proof --rerun`: the command gates once more, on a clean checkout of the tip. */
import { homedir } from 'node:os';
import { basename, join } from 'node:path';
import type { Failure } from '../failure.js';
import { dueGates, isAllowed } from '../gates/gate.js';
import type { Oid, SpecSlug } from '../issue.js';
import { SpecBudget } from '../loop/budget.js';
import { specGates } from '../loop/spec-loop.js';
import { systemClock } from '../platform/clock.js';
import { lookForMarked } from '../platform/marked.js';
import type { Policy } from '../policy.js';
import { specsFolder } from '../spec.js';
import { findBase, findUserBase } from '../store/intake.js';
import { codeTree, specsTree } from '../store/tree.js';
import { readAccepted } from '../store/waivers.js';
import type { OpenedGit } from '../worktree/git-types.js';
import { judgeBase } from './baseline.js';
import type { ProofCheck } from './proof-check.js';
import { openLeftovers } from './leftovers.js';
import { openShared } from './shared.js';
import type { Terminal } from './show.js';
import { openWorkshop, workRoot } from './workshop.js';

/** What is run again. */
export interface RerunSubject {
  readonly git: OpenedGit;
  readonly top: string;
  readonly policy: Policy;
  readonly spec: SpecSlug;
  readonly tip: Oid;
  readonly terminal: Terminal;
}

/** Runs the command gates on a clean checkout of the tip; no pass of the past counts. */
export async function runAgain(subject: RerunSubject, runFolder: string): Promise<readonly ProofCheck[]> {
  const { git, policy, spec, tip } = subject;
  const base = (await findUserBase(git, tip)) ?? tip;
  const stop = new AbortController();
  // What a person accepted for the Spec holds here too.
  const accepted = await readAccepted(git, tip, `${specsFolder}/${spec}/SPEC.md`);
  const opened = await openGates(subject, { runFolder, base, signal: stop.signal });
  const { workshop } = opened;
  if (!workshop.ok) return [{ what: 'the gates again', holds: false, detail: failureText(workshop.failure) }];
  const gates = [...new Set([...specGates(policy), ...dueGates(policy.gates, 'integration', [])])].filter(
    ({ kind }) => kind === 'command',
  );
  const onSignal = (): void => {
    stop.abort('stopped');
  };
  process.once('SIGINT', onSignal).once('SIGTERM', onSignal);
  try {
    // Failures that the base had are told apart only by looking at it; what comes of that is judged below.
    if (policy.evidence.baseline === 'allow') {
      const specBase = (await findBase(git, tip)) ?? tip;
      const quiet = { emit: () => undefined, signal: stop.signal };
      await judgeBase({ ...quiet, git, policy, workshop: workshop.value, base: specBase, tip });
    }
    const { gates: verdicts } = await workshop.value.verifier.verify({
      scope: 'spec',
      issue: null,
      gates,
      codeTree: await codeTree(git, (await git.readCommit(tip)).tree),
      attempt: null,
      subject: null,
      accepted,
      signal: stop.signal,
    });
    return verdicts.map((verdict) => ({
      what: `gate ${verdict.gate} again`,
      holds: isAllowed(verdict, accepted),
      detail: verdict.findings[0]?.message ?? `passed in ${String(Math.round(verdict.durationMs))} ms`,
    }));
  } finally {
    process.removeListener('SIGINT', onSignal).removeListener('SIGTERM', onSignal);
    await opened.close();
  }
}

/** What gates run with; `close` ends what they left. */
async function openGates(
  { git, policy, spec, top, terminal }: RerunSubject,
  request: { readonly runFolder: string; readonly base: Oid; readonly signal: AbortSignal },
): Promise<{ readonly workshop: Awaited<ReturnType<typeof openWorkshop>>; readonly close: () => Promise<void> }> {
  const { runFolder, base, signal } = request;
  const shared = await openShared({
    ...{ commonDir: git.commonDir, name: spec, clock: systemClock },
    ...{ concurrency: 1, gates: policy.limits.gates, limit: policy.budget.run },
  });
  const folders = {
    prepared: { policy, spec },
    cacheFolder: terminal.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache'),
  };
  const leftovers = openLeftovers({
    ...{ commonDir: git.commonDir, spec, run: basename(runFolder), root: workRoot({ git, ...folders }) },
    ...{
      graceMs: policy.limits.graceMs,
      limits: policy.limits,
      clock: systemClock,
      emit: () => undefined,
      look: lookForMarked,
    },
  });
  const workshop = await openWorkshop({
    ...{ git, top, runFolder, shared, leftovers, ...folders },
    own: terminal.env,
    baseSpecs: await specsTree(git, (await git.readCommit(base)).tree),
    clock: systemClock,
    signal: signal,
    emit: () => undefined,
    remember: false,
    // No judge is called again, so nobody pauses.
    jitter: () => 0,
    budget: new SpecBudget(policy.budget, {
      ...{ run: shared.spending, clock: systemClock },
      charged: () => undefined,
    }),
  });
  return {
    workshop,
    close: async () => {
      await leftovers.endOwn();
      if (workshop.ok) await workshop.value.close();
      await shared.close();
    },
  };
}

function failureText(failure: Failure): string {
  return 'message' in failure ? failure.message : failure.kind;
}
