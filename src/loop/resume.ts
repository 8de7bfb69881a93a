/** The first step of an Issue: fresh, or as an earlier run left it. */
import { unreachable } from '../failure.js';
import type { Finding, WorkNote } from '../issue.js';
import { findingId } from '../issue.js';
import { unknownUsage } from '../usage.js';
import { afterRed, attemptsAllowed, escalate, lastFinding, nothingChanged, type Run, type Step } from './decide.js';
import type { Taken } from './ports.js';

/** Takes an Issue up; `standing` says where. */
export async function firstStep(run: Run): Promise<Step> {
  const { record, ports } = run;
  switch (record.standing) {
    case 'by-hand':
      await noAgent(run);
      return adopt(run, { code: null, findings: await onBranch(run), size: noSize, subjects: [] }, 'by hand');
    case 'judging':
      await noAgent(run);
      return 'judge';
    case 'integrating':
      await noAgent(run);
      ports.emit({ type: 'issue.queued', issue: record.issue.id });
      return 'integrate';
    case 'interrupted':
      return interrupted(run);
    case 'between':
      return between(run);
    case 'fresh':
    case 'needs-human':
      return 'attempt';
    default:
      return unreachable(record.standing);
  }
}

/** The attempt counts; what its agent left is not its result. */
async function interrupted(run: Run): Promise<Step> {
  const { record, ports } = run;
  const findings = [{ message: 'interrupted: giro ended while this attempt was running' }];
  const line = record.budgetUsed >= attemptsAllowed(run) ? await clearedFolder(run) : undefined;
  await record.recordVerdict({ verdict: 'fail', gates: [], findings, ...(line === undefined ? {} : { line }) });
  await record.bringOnto(ports.tip());
  return afterRed(run, findings);
}

/**
 * No agent will come into the folder before a person does: the dead one's files go out of it (they are saved), so that
 * what is found there later is a person's.
 */
async function clearedFolder({ ports, record }: Run): Promise<WorkNote | undefined> {
  if (record.commit === null || record.takenBack) return undefined;
  const { files } = await record.trees();
  const prepared = await ports.folders.prepare(record.issue.id, record.commit, files);
  return prepared.ok ? { ...noSize, subjects: [], duration: 'interrupted', usage: unknownUsage } : undefined;
}

/** What was decided before a kill is decided again; after an answer there may be work of a person's to judge. */
async function between(run: Run): Promise<Step> {
  const { record, ports } = run;
  if (record.answered && record.takenBack && record.commit !== null) {
    const { code } = await record.trees();
    const on = { base: record.base, own: code, tip: ports.tip() };
    const taken = await ports.folders.found(record.issue, on);
    if (taken !== null && taken.code !== null && taken.code !== code) {
      await noAgent(run);
      return adopt(run, taken, 'by hand');
    }
  }
  if (record.story.canJudgeAgain) {
    await noAgent(run);
    return adopt(run, { code: null, findings: await onOwnWork(run), size: noSize, subjects: [] }, 'judged again');
  }
  await record.bringOnto(ports.tip());
  const findings = lastFinding(record);
  if (record.couldNotBeJudged)
    return escalate(run, { cause: 'cannot-run-here', why: 'a gate cannot run here', findings });
  return afterRed(run, findings);
}

const noSize = { files: 0, insertions: 0, deletions: 0 };

/** What the engine finds on the commits of the branch. */
async function onBranch({ ports, record }: Run): Promise<readonly Finding[]> {
  const { code } = await record.trees();
  return ports.folders.inspect(record.issue, code, record.base);
}

/** What was found on the newest work itself, then and now. */
async function onOwnWork(run: Run): Promise<readonly Finding[]> {
  const all = [...run.record.story.own, ...(await onBranch(run))];
  return [...new Map(all.map((finding) => [findingId(finding), finding])).values()];
}

async function adopt(run: Run, work: Taken, by: 'by hand' | 'judged again'): Promise<Step> {
  const { code, onto, size, subjects } = work;
  const trees = await run.record.trees();
  const findings = [...((code ?? trees.code) === trees.baseCode ? [nothingChanged] : []), ...work.findings];
  const line = { ...size, subjects, duration: by };
  await run.record.adoptWork({ code, by, findings, line, ...(onto === undefined ? {} : { onto }) });
  return 'judge';
}

/** Gives back the slot that the Issue was dispatched with: its next step needs no agent. */
async function noAgent(run: Run): Promise<void> {
  await run.slots.agent(() => Promise.resolve());
}
