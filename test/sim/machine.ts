/** Folders, workers, gates and a planner that play what a seed says, for the real engine. */
import type { Workshop, WorkshopPorts } from '../../src/cli/workshop.js';
import type { Planner } from '../../src/cli/planning.js';
import type { Driver, DriverOutcome, DriverRequest } from '../../src/drivers/driver.js';
import { ok } from '../../src/failure.js';
import { createBaseline } from '../../src/gates/baseline.js';
import { verdictOf, type GateVerdict, type Verifier, type VerifyRequest } from '../../src/gates/gate.js';
import { blankVerdict } from '../../src/gates/run.js';
import type { IssueId, Oid } from '../../src/issue.js';
import type { Taken, WorkFolders } from '../../src/loop/ports.js';
import type { GateDefinition } from '../../src/policy.js';
import { unknownUsage } from '../../src/usage.js';
import { halfWorked, lacking, worked, wrongs, type Files, type Work } from './code.js';
import type { Oracle } from './oracle.js';
import type { Life } from './process.js';
import { answers, factsOf } from './record.js';
import { agentMs, longestGateMs, longestLimitMs, moodOf, playOf } from './script.js';
import { attemptKey, type World } from './world.js';

/** One life of giro in a world. */
export interface Scene {
  readonly world: World;
  readonly life: Life;
  readonly oracle: Oracle;
}

/** Makes the workshop of a run. */
export function workshopOf(scene: Scene, ports: WorkshopPorts): Workshop {
  const driver = driverOf(scene);
  return {
    folders: foldersOf(scene),
    clear: () => Promise.resolve(),
    verifier: verifierOf(scene, ports),
    baseline: createBaseline(),
    driver,
    parking: ports.shared.parking(driver.name),
    budget: ports.budget,
    planner: plannerOf(scene),
    environment: () => ({}),
    logFile: (issue, attempt) => `/sim/logs/${issue}.${String(attempt)}`,
    envelopeFile: () => '/sim/envelope',
    shown: (path) => path,
    close: () => Promise.resolve(),
  };
}

function workOf({ world }: Scene, issue: IssueId, attempt: number): Work {
  const branch = world.store.readRef(world.branchOf(issue));
  const text = branch === null ? null : world.store.text(branch, world.pathOf(issue));
  const life = text === null ? 0 : answers(factsOf(text).entries);
  return { issue, attempt, life, play: playOf(world.script, { issue, attempt, life }) };
}

function driverOf(scene: Scene): Driver {
  return {
    name: 'claude',
    async run(request, contract) {
      const { issue, attempt } = request;
      if (issue === null) throw new Error('a worker has an Issue');
      const { ended, result } = await drive(scene, request, { issue, attempt });
      const parsed = result.kind === 'finished' ? contract.parse(result.envelope) : null;
      if (parsed?.ok === false) throw new Error(parsed.failure);
      return {
        result: result.kind === 'finished' && parsed !== null ? { kind: 'finished', envelope: parsed.value } : result,
        ended,
        durationMs: agentMs(scene.world.script, issue, attempt),
        tail: '',
        usage: unknownUsage,
        model: null,
      } as DriverOutcome<never>;
    },
  };
}

type Driven = Pick<DriverOutcome<Record<string, unknown>>, 'ended' | 'result'>;

async function drive(
  { world, life, oracle }: Scene,
  request: DriverRequest,
  { issue, attempt }: { readonly issue: IssueId; readonly attempt: number },
): Promise<Driven> {
  const key = attemptKey(issue, attempt);
  const work = await life.step(() => {
    const own = workOf({ world, life, oracle }, issue, attempt);
    oracle.agentStarts(issue, attempt);
    world.starts.set(key, { run: world.run, play: own.play, ended: 'running' });
    return own;
  });
  const before = world.folders.get(issue)?.files ?? new Map<string, string>();
  const ms = work.play === 'timeout' ? request.timeoutMs : agentMs(world.script, issue, attempt);
  await life.clock.sleep(ms / 2, request.signal);
  if (!request.signal.aborted) await life.step(() => leave(world, issue, halfWorked(before, work)));
  await life.clock.sleep(ms / 2, request.signal);
  return life.step(() => {
    oracle.agentEnds(key);
    const start = world.starts.get(key);
    if (start !== undefined) start.ended = request.signal.aborted ? 'stopped' : 'ended';
    if (request.signal.aborted) return { ended: { kind: 'cancelled', reason: 'stopped' }, result: { kind: 'stopped' } };
    const isWorking = work.play !== 'operation' && work.play !== 'limit';
    leave(world, issue, isWorking ? worked(world.script, before, work) : before);
    return endOf({ world, life, oracle }, work, ms);
  });
}

function leave(world: World, issue: IssueId, files: Files): void {
  const shown = world.folders.get(issue)?.shown ?? files;
  world.folders.set(issue, { files, shown, by: 'agent' });
}

function endOf({ world, life, oracle }: Scene, { play, issue, attempt }: Work, ms: number): Driven {
  const exited = { kind: 'exited', code: 0 } as const;
  const broken = { kind: 'exited', code: 75 } as const;
  switch (play) {
    case 'operation':
      return { ended: broken, result: { kind: 'operation', reason: 'agent is unavailable: network' } };
    case 'limit': {
      const pauseMs = world.script.chance.whole(1000, longestLimitMs, 'limit', issue, attempt);
      const until = new Date(life.clock.now() + pauseMs).toISOString();
      oracle.limited(life.clock.now() + pauseMs);
      return { ended: broken, result: { kind: 'usage-limit', reason: 'agent is unavailable: usage-limit', until } };
    }
    case 'failed':
      return { ended: { kind: 'exited', code: 1 }, result: { kind: 'failed', reason: 'agent exited 1' } };
    case 'timeout':
      return { ended: { kind: 'timed-out', limitMs: ms }, result: { kind: 'failed', reason: 'agent timed out' } };
    case 'blocked':
    case 'blocked-good':
      return { ended: exited, result: { kind: 'finished', envelope: { status: 'blocked', question: 'which one?' } } };
    case 'good':
    case 'bad':
    case 'same':
    case 'nothing':
    case 'untaken':
    case 'overrule':
    case 'unprepared':
      return { ended: exited, result: { kind: 'finished', envelope: { status: 'done' } } };
  }
}

function foldersOf(scene: Scene): WorkFolders {
  const { world, life } = scene;
  const { store } = world;
  const held = new Map<IssueId, number>();
  const taken = (issue: IssueId, base: Oid): Taken => {
    const code = store.treeOf(world.folders.get(issue)?.files ?? new Map());
    const files = store.diffTrees(world.code(base), code).length;
    return { code, findings: [], subjects: [], size: { files, insertions: files, deletions: 0 } };
  };
  return {
    async prepare(issue, commit, files) {
      const { attempt } = newestOf(scene, issue);
      await life.clock.sleep(world.script.chance.whole(0, 200, 'prepare', issue, attempt));
      return life.step(() => {
        if (workOf(scene, issue, attempt).play === 'unprepared') {
          world.broken.add(attemptKey(issue, attempt));
          return { ok: false, failure: { kind: 'environment', message: `no folder for ${commit}`, hint: '' } };
        }
        const shown = world.filesOf(world.code(files));
        world.folders.set(issue, { files: shown, shown, by: 'giro' });
        const number = slotOf(held, issue);
        return ok({ folder: `/sim/${issue}`, slot: { number, portBase: 10_000 + number, temporary: '/sim/tmp' } });
      });
    },
    takeBack: (issue, base) =>
      life.step(() => {
        const { attempt } = newestOf(scene, issue.id);
        if (workOf(scene, issue.id, attempt).play !== 'untaken') return taken(issue.id, base);
        const findings = [{ message: 'a repository in the folder cannot be taken' }];
        return { ...taken(issue.id, base), code: null, findings };
      }),
    found: (issue, { base }) =>
      life.read(() => {
        const folder = world.folders.get(issue.id);
        if (folder === undefined) return null;
        const left = taken(issue.id, base);
        if (left.code === store.treeOf(folder.shown)) return null;
        const { attempt } = newestOf(scene, issue.id);
        // What could not be taken is still there, unless a person saw to it.
        const isUntaken = folder.by === 'agent' && world.starts.get(attemptKey(issue.id, attempt))?.play === 'untaken';
        return isUntaken ? { ...left, code: null } : left;
      }),
    inspect: () => life.read(() => []),
    release: (issue) => {
      held.delete(issue);
      if (life.isAlive) world.folders.delete(issue);
    },
    leave: (issue) => (held.delete(issue) ? `/sim/${issue}` : null),
  };
}

function slotOf(held: Map<IssueId, number>, issue: IssueId): number {
  const known = held.get(issue);
  if (known !== undefined) return known;
  const taken = new Set(held.values());
  let number = 1;
  while (taken.has(number)) number += 1;
  held.set(issue, number);
  return number;
}

function newestOf({ world }: Scene, issue: IssueId): { readonly attempt: number } {
  const branch = world.store.readRef(world.branchOf(issue));
  const entries = branch === null ? [] : (world.factsAt(branch, issue)?.entries ?? []);
  return { attempt: entries.findLast((entry) => entry.attempt !== null)?.attempt ?? 0 };
}

function verifierOf(scene: Scene, { shared, emit }: WorkshopPorts): Verifier {
  const { world, life, oracle } = scene;
  return {
    async verify(request) {
      const verdicts: GateVerdict[] = [];
      for (const gate of request.gates) {
        const passed = world.passes.has(`${gate.name} ${request.codeTree}`);
        const about = { scope: request.scope, gate: gate.name, issue: request.issue, tree: request.codeTree };
        const verdict = passed
          ? { ...blankVerdict(gate), verdict: 'pass' as const, cached: true }
          : await shared.gates.add(async () => {
              if (request.signal.aborted) return cancelled(gate);
              await life.step(() => {
                oracle.gateStarts();
              });
              emit({ type: 'gate.started', ...about, log: '/sim/gate' });
              const judged = await judge(scene, request, gate);
              oracle.gateEnds();
              return judged;
            });
        const { durationMs, ended, findings, cached } = verdict;
        emit({ type: 'gate.finished', ...about, verdict: verdict.verdict, cached, durationMs, ended, findings });
        verdicts.push(verdict);
      }
      const verdict = verdictOf(verdicts, request.accepted);
      if (verdict.passed && request.scope === 'integration') world.proven.add(request.codeTree);
      return verdict;
    },
  };
}

function cancelled(gate: GateDefinition): GateVerdict {
  return { ...blankVerdict(gate), cause: 'cancelled', findings: [{ message: 'was stopped', gate: gate.name }] };
}

async function judge({ world, life }: Scene, request: VerifyRequest, gate: GateDefinition): Promise<GateVerdict> {
  const { script } = world;
  const { codeTree: tree, issue, attempt } = request;
  const nth = world.judged.get(tree) ?? 0;
  world.judged.set(tree, nth + 1);
  const durationMs = script.chance.whole(0, longestGateMs, 'gate', tree, nth);
  await life.clock.sleep(durationMs, request.signal);
  if (request.signal.aborted) return cancelled(gate);
  return life.step((): GateVerdict => {
    const mood = moodOf(script, { tree, nth, run: world.run });
    const files = world.filesOf(tree);
    const wrong = [...wrongs(script, files), ...(gate.name === 'whole' ? lacking(script, files) : [])];
    const blank = { ...blankVerdict(gate), durationMs, ended: { kind: 'exited', code: 1 } as const };
    const red = (message: string) => ({ message, gate: gate.name });
    if (mood === 'errored' || mood === 'cannot-run-here') {
      if (issue === null) world.wholeTrouble.add(mood);
      else world.broken.add(attemptKey(issue, attempt ?? 0));
      return { ...blank, cause: mood, findings: [red('no such program')] };
    }
    if (wrong.length > 0) return { ...blank, cause: 'failed', findings: wrong.map(red) };
    if (mood === 'flaky') {
      if (issue === null) world.wholeTrouble.add(mood);
      return { ...blank, cause: 'flaky', findings: [red('red once and green once')] };
    }
    world.passes.add(`${gate.name} ${tree}`);
    return { ...blank, verdict: 'pass', ended: { kind: 'exited', code: 0 } };
  });
}

function plannerOf(scene: Scene): Planner {
  const { world, life, oracle } = scene;
  const { chance, gaps } = world.script;
  return {
    driver: 'claude',
    logFile: (plan) => `/sim/logs/plan.${String(plan)}`,
    async run({ plan, commit }) {
      const durationMs = chance.whole(100, 20_000, 'plan', plan);
      await life.step(() => {
        oracle.plannerStarts(plan);
      });
      await life.clock.sleep(durationMs, life.stop.signal);
      return life.step(() => {
        oracle.agentEnds(`plan ${String(plan)}`);
        const spent = { durationMs, tail: '', usage: unknownUsage };
        if (life.stop.signal.aborted) return { ...spent, result: { kind: 'stopped' } };
        const isBroken = world.run < 6 && chance.is(0.2, 'planner breaks', plan);
        if (isBroken) return { ...spent, result: { kind: 'operation', reason: 'network' } };
        const there = world
          .issuesAt(commit)
          .filter((issue) => issue.includes('-gap') && world.factsAt(commit, issue)?.state !== 'wontfix').length;
        const texts = Array.from({ length: gaps - there }, (_, index) => ({
          slug: `gap-${String(plan)}-${String(index)}`,
          title: 'A gap',
          body: 'Close it.',
          dependsOn: [],
          touches: [],
          resources: [],
        }));
        return { ...spent, result: { kind: 'finished', envelope: { kind: 'issues', issues: texts } } };
      });
    },
  };
}
