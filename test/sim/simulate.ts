/** Runs the real engine in the world of one seed, through crashes, stops and answers, until it is done. */
import PQueue from 'p-queue';
import { runWith } from '../../src/cli/engine.js';
import type { EngineEnd } from '../../src/cli/engine-request.js';
import { prepareRead } from '../../src/cli/prepare.js';
import type { Shared } from '../../src/cli/shared.js';
import type { EventBody } from '../../src/event.js';
import { ok, type Failure, type Result } from '../../src/failure.js';
import type { Verifier } from '../../src/gates/gate.js';
import { RunBudget } from '../../src/loop/budget.js';
import { Parking } from '../../src/loop/parking.js';
import { noConfinement } from '../../src/platform/confinement.js';
import type { Policy } from '../../src/policy.js';
import { AgentLimit } from '../../src/scheduler/slots.js';
import type { OpenedGit } from '../../src/worktree/git-types.js';
import { gate, policyOf } from '../rig/policy.js';
import { isGivenUp, statesAt, wrongEnd } from './ends.js';
import { openStore } from './git.js';
import { workshopOf, type Scene } from './machine.js';
import { Oracle } from './oracle.js';
import { Person } from './people.js';
import { Life, Violation } from './process.js';
import { agentLimitMs, faultOf, longestGateMs, longestLimitMs, scriptOf, type Script } from './script.js';
import { Views } from './views.js';
import { World } from './world.js';

/** What may be weaker than it is, to see that the simulation finds it. */
export interface Parts {
  /** Git as one life of giro is handed it. */
  readonly git: (git: OpenedGit, world: World) => OpenedGit;
  readonly verifier: (verifier: Verifier) => Verifier;
  readonly policy: (policy: Policy) => Policy;
  readonly agents: (limit: number) => number;
  readonly gates: (limit: number) => number;
  readonly parking: (parking: Parking) => Parking;
  /** What a crash does to what was recorded. */
  readonly crashed: (world: World) => void;
  readonly checkout: (path: string, text: string) => string;
  readonly event: (body: EventBody) => EventBody | null;
}

/** The engine as it is. */
export const wholeParts: Parts = {
  git: (git) => git,
  verifier: (verifier) => verifier,
  policy: (policy) => policy,
  agents: (limit) => limit,
  gates: (limit) => limit,
  parking: (parking) => parking,
  crashed: () => undefined,
  checkout: (_, text) => text,
  event: (body) => body,
};

/** What came of a seed. */
export interface Report {
  readonly seed: number;
  /** What must not happen and did; `null`: nothing. */
  readonly violation: string | null;
  readonly lines: readonly string[];
  readonly runs: number;
  readonly crashes: number;
}

/** More runs than any seed needs after its last fault. */
const mostRuns = 30;

/** Simulates one seed to its end. */
export async function simulate(
  seed: number,
  { parts = wholeParts, isTold = false }: { readonly parts?: Parts; readonly isTold?: boolean } = {},
): Promise<Report> {
  const world = new World(scriptOf(seed), isTold);
  let crashes = 0;
  for (const [path, text] of world.checkout) world.checkout.set(path, parts.checkout(path, text));
  const report = (violation: string | null): Report => ({
    ...{ seed, violation, crashes, runs: world.run + 1 },
    lines: world.lines,
  });
  for (; world.run < mostRuns; world.run += 1) {
    try {
      const end = await oneLife(world, parts);
      if (end === 'proof' || end === 'given up') return report(null);
      if (end === 'crashed') {
        crashes += 1;
        parts.crashed(world);
      }
    } catch (error) {
      world.say(() => `    ${error instanceof Violation ? error.message : String((error as Error).stack)}`);
      return report(error instanceof Error ? error.message : String(error));
    }
  }
  return report('it never ends with proof');
}

/** One start of giro, and what a person does afterwards. */
async function oneLife(world: World, parts: Parts): Promise<'proof' | 'given up' | 'crashed' | 'asks' | 'stopped'> {
  const fault = faultOf(world.script, world.run);
  world.say(() => `run ${String(world.run)}: ${JSON.stringify(fault)}`);
  const life = new Life(world.now, fault);
  const scene = { world, life, oracle: new Oracle(world, life) };
  const person = new Person(world, scene.oracle, () => life.clock.now());
  void visits(scene, person);
  const limitMs = longestRunMs(world.script);
  const result = await life.drive(runOnce(scene, parts), () => {
    if (life.clock.monotonic() > limitMs) life.fail(`the run takes longer than ${String(limitMs)} ms`);
  });
  world.now = life.clock.now() + 1000;
  if (life.violation !== null) throw life.violation;
  if (result === 'crashed') {
    world.say(() => '    giro is killed');
    return result;
  }
  if (!result.ok) throw new Violation(`it did not start: ${JSON.stringify(result.failure)}`);
  const { end } = result.value;
  world.say(() => `    ends: ${JSON.stringify(end)}`);
  const wrong = wrongEnd(world, life, result.value);
  if (wrong !== null) throw new Violation(`${wrong} (end)`);
  if (end.kind === 'proof') return 'proof';
  if (isGivenUp(statesAt(world, result.value.tip))) return 'given up';
  await person.betweenRuns();
  return end.kind === 'needs-human' ? 'asks' : 'stopped';
}

async function visits({ world, life }: Scene, person: Person): Promise<void> {
  const { chance, issues } = world.script;
  const count = chance.is(0.4, 'visits', world.run) ? chance.whole(1, 4, 'visit count', world.run) : 0;
  for (let nth = 0; nth < count; nth += 1) {
    await life.clock.sleep(chance.whole(100, 20_000 * (1 + issues.length / 3), 'visit', world.run, nth));
    if (life.isAlive) await person.during(nth);
  }
}

async function runOnce(scene: Scene, parts: Parts): Promise<Result<EngineEnd, Failure>> {
  const { world, life, oracle } = scene;
  const { script, store } = world;
  const { clock } = life;
  let moves = 0;
  const delayMs = (ref: string): number =>
    script.chance.is(0.5, 'delay', world.run, (moves += 1)) ? 0 : script.chance.whole(1, 40, ref, world.run, moves);
  const moved = oracle.moved.bind(oracle);
  const git = parts.git(openStore(store, life, { head: world.head, delayMs, moved }), world);
  const policy = parts.policy(policyFor(script));
  const read = [...world.checkout].map(([path, text]) => ({ path, bytes: Buffer.from(text) }));
  const asked = { git, top: '/sim', spec: world.spec, issue: null, named: true, at: clock.iso(), read };
  const prepared = await prepareRead(policy, asked);
  if (!prepared.ok) return prepared;
  const views = new Views(world, life);
  const shared = sharedOf(script, life, parts);
  let draws = 0;
  return runWith(
    {
      ...{
        git,
        prepared: prepared.value,
        top: '/sim',
        own: {},
        cacheFolder: '/sim',
        runFolder: '/sim/run',
        run: 'sim',
      },
      ...{ stack: { base: world.head, along: [] }, only: null, shared, agents: shared.agents.share(0), clock },
      ...{ signal: life.stop.signal, noMore: life.noMore.signal, landed: () => undefined, giro: 'sim' },
      jitter: () => script.chance.share('jitter', world.run, (draws += 1)),
      emit: (body) => {
        if (!life.isAlive) return;
        say(world, life, body);
        const told = parts.event(body);
        if (told !== null) views.take(told);
        if (body.type === 'issue.integrated' || body.type === 'issue.escalated') oracle.rests(body.issue);
      },
    },
    {
      openWorkshop: (ports) => {
        const workshop = workshopOf(scene, ports);
        return Promise.resolve(ok({ ...workshop, verifier: parts.verifier(workshop.verifier) }));
      },
      openLeftovers: () => ({
        environment: {},
        confinement: noConfinement,
        endEarlier: () => life.step(() => null),
        endOwn: () => life.step(() => undefined),
        vacate: () => Promise.resolve([]),
      }),
      openLeasing: () =>
        Promise.resolve({
          take: () => Promise.resolve(null),
          giveBack: () => Promise.resolve(),
          holder: () => null,
          watch: () => Promise.resolve(),
          close: () => Promise.resolve(),
        }),
      hooksNotice: () => Promise.resolve(null),
    },
  );
}

function policyFor({ budget, agents, gates, gaps }: Script): Policy {
  const judged = [gate('test'), ...(gaps > 0 ? [gate('whole', ['spec'])] : [])];
  const policy = policyOf({ ...budget, attemptTimeoutMs: agentLimitMs }, judged);
  return { ...policy, limits: { ...policy.limits, agents, gates } };
}

function sharedOf(script: Script, { clock }: Life, parts: Parts): Shared {
  const parking = parts.parking(new Parking(clock));
  const noSlots = (): never => {
    throw new Error('not simulated');
  };
  return {
    agents: new AgentLimit(parts.agents(script.agents)),
    gates: new PQueue({ concurrency: parts.gates(script.gates) }),
    slots: { take: noSlots, renew: noSlots, free: noSlots, close: () => Promise.resolve() },
    parking: () => parking,
    clock,
    spending: new RunBudget({ tokens: null, costUsd: null }),
    close: () => Promise.resolve(),
  };
}

/** Every attempt, retry, gate and pause that the budgets allow, one after the other, and answers in between. */
function longestRunMs({ issues, budget, gaps }: Script): number {
  const retriesMs = budget.failures * (agentLimitMs + longestLimitMs + 90_000);
  const attemptMs = retriesMs + agentLimitMs + 6 * longestGateMs;
  return (issues.length + gaps * budget.rounds) * budget.attempts * 5 * attemptMs + 20 * 60_000;
}

function say(world: World, life: Life, { type, ...rest }: EventBody): void {
  world.say(() => `    ${(life.clock.monotonic() / 1000).toFixed(3)} ${type} ${JSON.stringify(rest).slice(0, 300)}`);
}
