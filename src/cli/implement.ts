/** `giro implement <target>`: the one verb. */
import { availableParallelism } from 'node:os';
import { stateOf } from '../backlog-state.js';
import { failed, ok, type Failure, type Result } from '../failure.js';
import type { IssueId, SpecSlug } from '../issue.js';
import { systemClock } from '../platform/clock.js';
import type { Budget } from '../policy.js';
import { ndjsonOf } from '../report/ndjson.js';
import type { RunLock } from '../store/lock.js';
import { implementBacklog } from './backlog.js';
import { runLimit } from './budgeting.js';
import { dryRun } from './dry-run.js';
import { exitCodes } from './exit.js';
import { forbidden } from './forbidden.js';
import { openRepository, type Opened } from './opened.js';
import type { ImplementOptions, ProcessEnd } from './options.js';
import { prepare, type Prepared } from './prepare.js';
import { refuse } from './refuse.js';
import { provedAlready, provedAlreadyEvent, runToEnd, whileLocked, type SpecRun } from './run-spec.js';
import { openShared } from './shared.js';
import { write, type Terminal } from './show.js';
import { stackOf } from './stacking.js';
import { whileShown, type Shown } from './showing.js';
import { findIssue, someOf } from './target.js';

/** Runs the command. */
export async function implement(options: ImplementOptions, terminal: Terminal): Promise<ProcessEnd> {
  const opened = await openRepository(options, terminal);
  if (!opened.ok) {
    const { failure } = opened;
    return failure.kind === 'forbidden' ? forbidden(failure, { options, terminal }) : refuse(failure);
  }
  const { git, target } = opened.value;
  try {
    if (target.kind === 'backlog') return await implementBacklog(opened.value, { options, terminal });
    const issue = target.kind === 'issue' ? target.issue : null;
    return await implementSpec(opened.value, { spec: target.spec, issue }, { options, terminal });
  } finally {
    await git.close();
  }
}

interface Asked {
  readonly options: ImplementOptions;
  readonly terminal: Terminal;
}

/** Runs one Spec, or one of its Issues. */
async function implementSpec(
  opened: Opened,
  named: { readonly spec: SpecSlug; readonly issue: string | null },
  asked: Asked,
): Promise<ProcessEnd> {
  const { options, terminal } = asked;
  const { git } = opened;
  const prepared = await prepare({
    git,
    top: opened.top,
    ...named,
    named: true,
    own: terminal.env,
    processors: availableParallelism(),
    at: systemClock.iso(),
  });
  if (!prepared.ok) return refuse(prepared.failure);
  const only = onlyIssue(prepared.value, named.issue);
  if (!only.ok) return refuse(only.failure);
  const { policy, parsed, tip } = prepared.value;
  const stack = await stackOf({ git, policy }, { ...parsed.spec, tip });
  if (!stack.ok) return refuse(stack.failure);
  const limit = runLimit(policy, options.maxCost);
  if (!limit.ok) return refuse(limit.failure);
  if (options.dryRun) return dryRun(prepared.value, { head: git.user.head, run: limit.value }, asked);
  const proved = await provedAlready(git, prepared.value);
  if (proved !== null) {
    const event = provedAlreadyEvent(git, prepared.value, proved);
    const line = { v: 1 as const, at: systemClock.iso(), run: opened.run, ...event };
    write(terminal, options.json ? `${ndjsonOf(line)}\n` : `${proved.join('\n')}\n`);
    return { exit: exitCodes.proof };
  }
  const run = {
    opened,
    prepared: prepared.value,
    stack: stack.value,
    only: only.value,
    folder: opened.runFolder,
    terminal,
  };
  const ended = await whileLocked(opened, prepared.value, (lock) =>
    whileShown(
      {
        ...opened,
        options,
        terminal,
        specs: 'one',
        commonDir: git.commonDir,
        stoppable: { lock, files: [null, lock.spec] },
      },
      (shown) => runShown(run, { lock, options, limit: limit.value }, shown),
    ),
  );
  return ended.ok ? ended.value : refuse(ended.failure);
}

async function runShown(
  run: Pick<SpecRun, 'opened' | 'prepared' | 'stack' | 'only' | 'folder' | 'terminal'>,
  held: { readonly lock: RunLock; readonly options: ImplementOptions; readonly limit: Budget['run'] },
  shown: Shown,
): Promise<ProcessEnd> {
  const { feed, stopping, view, kind, terminal } = shown;
  const { policy, spec } = run.prepared;
  const shared = await openShared({
    commonDir: run.opened.git.commonDir,
    name: spec,
    concurrency: held.options.concurrency ?? policy.limits.agents,
    gates: policy.limits.gates,
    clock: systemClock,
    limit: held.limit,
  });
  const agents = shared.agents.share(0);
  const { noMore, stopped, landed } = shown;
  const watched = {
    signal: stopping.signal,
    noMore,
    stopped,
    landed,
    emit: feed.of(spec),
    state: () => stateOf(feed.state, spec),
  };
  const ended = await runToEnd({ ...run, ...watched, shared, agents }, held.lock).finally(() => shared.close());
  await view.close();
  if (!ended.ok) return refuse(ended.failure);
  if (kind === 'board') write(terminal, `${ended.value.lines.join('\n')}\n`);
  const by = stopping.by();
  return by === null ? { exit: ended.value.exit } : { signal: by };
}

/** The Issue that was named, whose dependencies must be integrated. */
function onlyIssue(prepared: Prepared, typed: string | null): Result<IssueId | null, Failure> {
  if (typed === null) return ok(null);
  const { issues, slug } = prepared.parsed.spec;
  const id = findIssue(
    issues.map((issue) => issue.id),
    typed,
  );
  const issue = issues.find((one) => one.id === id);
  if (issue === undefined) {
    const known = someOf(issues.map((one) => one.id));
    return failed({
      kind: 'usage',
      message: `the Spec ${slug} has no Issue ${JSON.stringify(typed)}`,
      hint: `known: ${known}`,
    });
  }
  const open = issue.dependsOn.filter((on) => issues.find((one) => one.id === on)?.state !== 'done');
  if (open.length === 0) return ok(issue.id);
  return failed({
    kind: 'usage',
    message: `${issue.id} depends on ${open.join(', ')}, not integrated yet`,
    hint: `run the whole Spec: giro implement ${slug}`,
  });
}
