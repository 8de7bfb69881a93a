import fc from 'fast-check';
import { expect, test } from 'vitest';
import { VirtualClock } from '../rig/virtual-clock.js';
import type { IssueId } from '../../src/issue.js';
import { buildGraph } from '../../src/scheduler/graph.js';
import { claimOf, sharedBy } from '../../src/scheduler/overlap.js';
import { schedule } from '../../src/scheduler/scheduler.js';
import type { ExecutionOutcome } from '../../src/scheduler/scheduler.js';
import { AgentLimit } from '../../src/scheduler/slots.js';
import { acyclic, id } from './issues.js';

/** What one Issue will do in a simulated run. */
interface Script {
  readonly attempts: readonly { readonly agentMs: number; readonly gatesMs: number }[];
  readonly end: ExecutionOutcome | 'throws';
  readonly touches: readonly string[];
  readonly resources: readonly string[];
  readonly settled: boolean;
  readonly blocked: boolean;
  readonly resuming: boolean;
  readonly estimate: number;
}

interface World {
  readonly issues: readonly (Script & { readonly id: IssueId; readonly dependsOn: readonly IssueId[] })[];
  readonly concurrency: number;
}

const script = (ends: readonly Script['end'][], mayRest: boolean): fc.Arbitrary<Script> =>
  fc.record({
    attempts: fc.array(
      fc.record({
        agentMs: fc.oneof(fc.nat(50), fc.nat(5000)),
        gatesMs: fc.oneof(fc.constant(0), fc.nat(60), fc.nat(5000)),
      }),
      { maxLength: 3 },
    ),
    end: fc.constantFrom(...ends),
    touches: fc.oneof(fc.constant([]), fc.subarray(['src/a/**', 'src/a/x.ts', 'src/ab/*', 'docs/**'])),
    resources: fc.oneof(fc.constant([]), fc.subarray(['postgres', 'port'])),
    settled: mayRest ? fc.oneof({ arbitrary: fc.constant(false), weight: 5 }, fc.boolean()) : fc.constant(false),
    blocked: mayRest ? fc.oneof({ arbitrary: fc.constant(false), weight: 7 }, fc.boolean()) : fc.constant(false),
    resuming: fc.boolean(),
    estimate: fc.integer({ min: 1, max: 5 }),
  });

function world(ends: readonly Script['end'][], mayRest = true): fc.Arbitrary<World> {
  return acyclic(12).chain((graph) =>
    fc.record({
      issues: fc
        .array(script(ends, mayRest), { minLength: graph.length, maxLength: graph.length })
        .map((scripts) => graph.flatMap((node, index) => (scripts[index] ? [{ ...scripts[index], ...node }] : []))),
      concurrency: fc.integer({ min: 1, max: 4 }),
    }),
  );
}

/** A run in a world, watched at every moment in which nothing can happen without time passing. */
async function simulate(
  { issues, concurrency }: World,
  abortAtMs = Infinity,
): Promise<{
  readonly result: ReadonlyMap<IssueId, ExecutionOutcome | 'waiting'> | { readonly error: unknown };
  readonly executed: ReadonlySet<IssueId>;
  readonly mostAgents: number;
}> {
  const clock = new VirtualClock();
  const abort = new AbortController();
  const byId = new Map(issues.map((issue) => [issue.id, issue]));
  const graph = buildGraph(issues);
  const path = graph.criticalPath((own) => byId.get(own)?.estimate ?? 1);
  const integrated = new Set(issues.filter((issue) => issue.settled).map((issue) => issue.id));
  const executing = new Set<IssueId>();
  const executed = new Set<IssueId>();
  /** Those whose first agent has not been asked for: their slot is theirs. */
  const reserved = new Set<IssueId>();
  const asking = new Set<IssueId>();
  const agents = new Set<IssueId>();
  const leftAgent = new Map<IssueId, number>();
  /** The first expectation that failed where the scheduler would take it for an Issue's own error. */
  let broken: { readonly error: unknown } | null = null;
  let longestAgent = 0;
  let mostAgents = 0;

  const isOpen = (own: IssueId): boolean => {
    const issue = byId.get(own);
    return issue !== undefined && !issue.settled && !issue.blocked;
  };
  const claim = (own: IssueId): ReturnType<typeof claimOf> => claimOf(byId.get(own) ?? { touches: [], resources: [] });
  const overlaps = (left: IssueId, right: IssueId): boolean =>
    left !== right && sharedBy(claim(left), claim(right)) !== undefined;
  const unmet = (own: IssueId): readonly IssueId[] =>
    (byId.get(own)?.dependsOn ?? []).filter((dependency) => !integrated.has(dependency));

  /** Issues for which a slot or a lease may be kept free now. */
  const expected = (): readonly IssueId[] =>
    [...leftAgent]
      .filter(([, since]) => clock.monotonic() - since < Math.min(15_000, 0.05 * longestAgent))
      .flatMap(([landing]) => graph.dependents(landing).filter((own) => isOpen(own) && unmet(own).join() === landing));

  const watch = (): void => {
    if (broken !== null) throw broken.error;
    expect(agents.size + reserved.size).toBeLessThanOrEqual(concurrency);
    if (abort.signal.aborted) return;
    if (asking.size > 0) expect(agents.size + reserved.size, 'a slot is empty while a retry waits').toBe(concurrency);
    if (agents.size + reserved.size === concurrency) return;
    for (const { id: own } of issues) {
      if (!isOpen(own) || executed.has(own) || unmet(own).length > 0) continue;
      const isLeased = [...executing].some((holder) => overlaps(holder, own));
      const isHeld = expected().some((soon) => (path.get(soon) ?? 0) > (path.get(own) ?? 0));
      expect(isLeased || isHeld, `${own} is ready, a slot is free, and nothing explains why it waits`).toBe(true);
    }
  };

  const mayStart = (own: IssueId): void => {
    expect(abort.signal.aborted, 'started after the abort').toBe(false);
    expect(executed.has(own), 'executed twice').toBe(false);
    expect(isOpen(own)).toBe(true);
    expect(unmet(own)).toEqual([]);
    for (const holder of executing) expect(overlaps(holder, own)).toBe(false);
    // One that asks again may have its slot already: its agent begins a moment after it was handed over.
    const first = [...asking].filter((other) => (path.get(other) ?? 0) >= (path.get(own) ?? 0));
    expect(agents.size + reserved.size + first.length, `${own} starts before a retry`).toBeLessThan(concurrency);
  };

  const execute: Parameters<typeof schedule>[0]['execute'] = async (own, slots) => {
    try {
      mayStart(own);
    } catch (error) {
      broken ??= { error };
    }
    executing.add(own);
    executed.add(own);
    reserved.add(own);
    const { attempts, end } = byId.get(own) ?? { attempts: [], end: 'throws' };
    try {
      for (const { agentMs, gatesMs } of attempts) {
        leftAgent.delete(own);
        if (!reserved.delete(own)) asking.add(own);
        await slots.agent(async () => {
          expect(abort.signal.aborted, 'an agent after the abort').toBe(false);
          asking.delete(own);
          agents.add(own);
          mostAgents = Math.max(mostAgents, agents.size);
          expect(agents.size).toBeLessThanOrEqual(concurrency);
          const since = clock.monotonic();
          await clock.sleep(agentMs, abort.signal);
          longestAgent = Math.max(longestAgent, clock.monotonic() - since);
          agents.delete(own);
          leftAgent.set(own, clock.monotonic());
        });
        await clock.sleep(gatesMs, abort.signal);
        if (abort.signal.aborted) return 'stopped';
      }
      if (end === 'throws') throw new Error(own);
      if (end === 'integrated') integrated.add(own);
      return end;
    } finally {
      executing.delete(own);
      reserved.delete(own);
      leftAgent.delete(own);
    }
  };

  if (abortAtMs < Infinity) {
    void clock.sleep(abortAtMs).then(() => {
      abort.abort(new Error('stop'));
      asking.clear();
    });
  }
  const work = schedule({
    issues,
    agents: new AgentLimit(concurrency).share(0),
    estimate: (own) => byId.get(own)?.estimate ?? 1,
    clock,
    signal: abort.signal,
    execute,
  }).catch((error: unknown) => ({ error }));
  const result = await clock.drive(work, watch);
  watch();
  expect(executing.size, 'settled before what runs').toBe(0);
  expect(clock.sleeping, 'no timer is left').toBeLessThanOrEqual(
    abort.signal.aborted || abortAtMs === Infinity ? 0 : 1,
  );
  return { result, executed, mostAgents };
}

/** The Issues that can run, whatever the order: all dependencies come out integrated. */
function runnable({ issues }: World): ReadonlySet<IssueId> {
  const met = new Set(issues.filter((issue) => issue.settled).map((issue) => issue.id));
  const able = new Set<IssueId>();
  for (let before = -1; before < able.size;) {
    before = able.size;
    for (const issue of issues) {
      if (issue.settled || issue.blocked || !issue.dependsOn.every((own) => met.has(own))) continue;
      able.add(issue.id);
      if (issue.end === 'integrated') met.add(issue.id);
    }
  }
  return able;
}

/** Issues without an agent start beside one that asks again and was handed its slot in the same instant (seed -1297577739). */
const besideARetry: World = {
  concurrency: 3,
  issues: [
    simple('6-issue', []),
    simple('4-issue', [37, 0]),
    simple('3-issue', [0]),
    simple('10-issue', [37]),
    simple('1-issue', [], { estimate: 2, dependsOn: ['4-issue'] }),
    simple('2-issue', [], { dependsOn: ['10-issue'] }),
    simple('9-issue', [], { estimate: 2, dependsOn: ['4-issue'] }),
    simple('11-issue', []),
    simple('5-issue', [37], { estimate: 2 }),
    simple('8-issue', []),
    simple('7-issue', []),
  ],
};

function simple(
  name: string,
  agentsMs: readonly number[],
  more: { readonly estimate?: number; readonly dependsOn?: readonly string[] } = {},
): World['issues'][number] {
  return {
    id: id(name),
    dependsOn: (more.dependsOn ?? []).map(id),
    attempts: agentsMs.map((agentMs) => ({ agentMs, gatesMs: 0 })),
    end: 'integrated',
    touches: [],
    resources: [],
    settled: false,
    blocked: false,
    resuming: false,
    estimate: more.estimate ?? 1,
  };
}

const someRuns = { numRuns: 250 };

test('everything that can run runs once, dependencies first, within slots and leases, and the rest waits (invariants 1 to 4, 7)', async () => {
  await fc.assert(
    fc.asyncProperty(world(['integrated', 'integrated', 'integrated', 'needs-human', 'stopped']), async (drawn) => {
      const { result, executed } = await simulate(drawn);
      const able = runnable(drawn);
      expect(executed).toEqual(able);
      expect(result).toEqual(
        new Map(
          drawn.issues
            .filter((issue) => !issue.settled && !issue.blocked)
            .map((issue) => [issue.id, able.has(issue.id) ? issue.end : 'waiting']),
        ),
      );
    }),
    { ...someRuns, examples: [[besideARetry]] },
  );
});

test('after an abort at any moment nothing starts and everything that runs is waited for (6)', async () => {
  await fc.assert(
    fc.asyncProperty(world(['integrated', 'integrated', 'needs-human']), fc.nat(12_000), async (drawn, abortAtMs) => {
      const { result, executed } = await simulate(drawn, abortAtMs);
      if ('error' in result) throw result.error;
      for (const [own, outcome] of result) expect(outcome === 'waiting').toBe(!executed.has(own));
    }),
    someRuns,
  );
});

test('an execution that throws stops nobody else, and its error comes out (5)', async () => {
  await fc.assert(
    fc.asyncProperty(world(['integrated', 'integrated', 'throws']), async (drawn) => {
      const { result, executed } = await simulate(drawn);
      const able = runnable(drawn);
      expect(executed).toEqual(able);
      const thrown = drawn.issues.filter((issue) => able.has(issue.id) && issue.end === 'throws').map(({ id }) => id);
      if (thrown.length === 0) expect(result).toBeInstanceOf(Map);
      else if (thrown.length === 1) expect(result).toMatchObject({ error: { message: thrown[0] } });
      else expect(result).toMatchObject({ error: { errors: { length: thrown.length } } });
    }),
    someRuns,
  );
});

test('the limit is reached when enough is ready at once (1)', async () => {
  await fc.assert(
    fc.asyncProperty(world(['integrated'], false), async (drawn) => {
      const free = { attempts: [{ agentMs: 10, gatesMs: 0 }], touches: [], resources: [], dependsOn: [] };
      const flat = { ...drawn, issues: drawn.issues.map((issue) => ({ ...issue, ...free })) };
      const { mostAgents } = await simulate(flat);
      expect(mostAgents).toBe(Math.min(drawn.concurrency, drawn.issues.length));
    }),
    { numRuns: 50 },
  );
});
