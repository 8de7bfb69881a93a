/**
 * How close the real scheduler comes to the shortest possible run, on a virtual clock: no real waiting.
 *
 * Simulated agents with heavy-tailed durations, four shapes of graph, a lane of one. The result is the makespan over
 * max(critical path, work / N) of the agents' times alone: no schedule is shorter, and the lane is not in it. The
 * shapes are such that this bound can be reached; a single row of forks and joins is not among them, since there the
 * bound itself is too low by up to a fifth (each fork has a bound of its own, and they add up).
 */
import { parseIssueId } from '../src/issue.js';
import type { IssueId } from '../src/issue.js';
import { estimateFrom } from '../src/scheduler/estimate.js';
import { buildGraph } from '../src/scheduler/graph.js';
import type { GraphNode } from '../src/scheduler/graph.js';
import { schedule } from '../src/scheduler/scheduler.js';
import { AgentLimit } from '../src/scheduler/slots.js';
import { median, type Row } from './report.js';
import { VirtualClock } from '../test/rig/virtual-clock.js';

/** What to simulate; everything has a default. */
export interface MakespanOptions {
  /** Graphs per cell, at least five. */
  readonly seeds?: number;
  readonly sizes?: readonly number[];
  readonly concurrency?: readonly number[];
  /** Mean time of an agent; the lane takes `verifyShare` of it for each Issue. */
  readonly meanMs?: number;
  readonly verifyShare?: number;
  /** Spread of estimates around the truth (sigma of a lognormal factor); 0: exactly right. */
  readonly estimateSpread?: number;
}

/** One line of the result: its ratio is the mean over shapes, laws and sizes of the median over seeds. */
export interface MakespanRow extends Row {
  readonly concurrency: number;
  readonly history: boolean;
}

const targets = {
  history: {
    must: new Map([
      [2, 1.03],
      [4, 1.05],
      [8, 1.05],
      [64, 1.08],
    ]),
    goal: new Map([
      [2, 1.02],
      [4, 1.02],
      [8, 1.02],
      [64, 1.035],
    ]),
  },
  none: {
    must: new Map<number, number>(),
    goal: new Map([
      [2, 1.02],
      [4, 1.05],
      [8, 1.06],
      [64, 1.06],
    ]),
  },
};

type Random = () => number;

const shapes: Readonly<Record<string, (size: number, random: Random) => readonly GraphNode[]>> = {
  layered,
  chains,
  'fork-join': forkJoin,
  random: randomGraph,
};

/** Mean 1 each: a lognormal with sigma 1, and a Pareto with infinite variance. */
const laws: Readonly<Record<string, (random: Random) => number>> = {
  lognormal: (random) => Math.exp(normal(random) - 0.5),
  pareto: (random) => 1 / 3 / (1 - random()) ** (1 / 1.5),
};

/** Simulates all cells; one row for each number of agents, with and without history. */
export async function runMakespan(options: MakespanOptions = {}): Promise<readonly MakespanRow[]> {
  const rows: MakespanRow[] = [];
  for (const history of [true, false]) {
    for (const agents of options.concurrency ?? [2, 4, 8, 64]) rows.push(await runRow(agents, history, options));
  }
  return rows;
}

async function runRow(concurrency: number, history: boolean, options: MakespanOptions): Promise<MakespanRow> {
  const { seeds = 5, sizes = [100, 1000] } = options;
  const cells: { readonly ratio: number; readonly cell: string }[] = [];
  for (const size of sizes) {
    for (const [shape, build] of Object.entries(shapes)) {
      for (const [law, draw] of Object.entries(laws)) {
        const ratios: number[] = [];
        for (let seed = 1; seed <= seeds; seed += 1) {
          // One seed gives the same graph and durations to every number of agents, with and without history.
          const random = generator(seed * 7919 + size);
          const nodes = build(size, random);
          ratios.push(await simulate({ nodes, draw: () => draw(random), random, concurrency, history, options }));
        }
        cells.push({ ratio: median(ratios), cell: `${shape}, ${law}, n = ${String(size)}` });
      }
    }
  }
  const worst = cells.reduce((left, right) => (right.ratio > left.ratio ? right : left));
  const { must, goal } = history ? targets.history : targets.none;
  const [mustReach, shouldReach] = [must.get(concurrency), goal.get(concurrency)];
  return {
    concurrency,
    history,
    what: `makespan, N = ${String(concurrency)}, ${history ? 'with history' : 'no history'}`,
    measured: `worst ${worst.ratio.toFixed(3)}: ${worst.cell}`,
    ratio: cells.reduce((sum, { ratio }) => sum + ratio, 0) / cells.length,
    ...(mustReach === undefined ? {} : { must: mustReach }),
    ...(shouldReach === undefined ? {} : { goal: shouldReach }),
  };
}

/** Runs one graph; returns its makespan over the lower bound. */
async function simulate(cell: {
  readonly nodes: readonly GraphNode[];
  readonly draw: () => number;
  readonly random: Random;
  readonly concurrency: number;
  readonly history: boolean;
  readonly options: MakespanOptions;
}): Promise<number> {
  const { nodes, draw, random, concurrency, history } = cell;
  const { meanMs = 1000, verifyShare = 0.01, estimateSpread = 0.5 } = cell.options;
  const durations = new Map(nodes.map(({ id }) => [id, draw() * meanMs]));
  const durationOf = (id: IssueId): number => durations.get(id) ?? meanMs;
  const remembered = new Map(
    [...durations].map(([id, ms]) => [id, ms * Math.exp(estimateSpread * normal(random))] as const),
  );
  const clock = new VirtualClock();
  let lane = Promise.resolve();
  const done = await clock.drive(
    schedule({
      issues: nodes.map((node) => ({
        ...node,
        touches: [],
        resources: [],
        settled: false,
        blocked: false,
        resuming: false,
      })),
      agents: new AgentLimit(concurrency).share(0),
      estimate: estimateFrom(history ? remembered : new Map()),
      clock,
      signal: new AbortController().signal,
      execute: async (id, slots) => {
        await slots.agent(() => clock.sleep(durationOf(id)));
        lane = lane.then(() => clock.sleep(verifyShare * meanMs));
        await lane;
        return 'integrated';
      },
    }),
  );
  if ([...done.values()].some((outcome) => outcome !== 'integrated')) throw new Error('not everything ran');
  const work = [...durations.values()].reduce((sum, ms) => sum + ms, 0);
  const path = Math.max(...buildGraph(nodes).criticalPath(durationOf).values());
  return clock.monotonic() / Math.max(path, work / concurrency);
}

/** Layers as wide as they are many; each Issue needs one to three of the layer before. */
function layered(size: number, random: Random): readonly GraphNode[] {
  const width = Math.round(Math.sqrt(size));
  return numbered(size, (index) => {
    const layer = Math.floor(index / width);
    return layer === 0 ? [] : some(1 + pick(3, random), () => (layer - 1) * width + pick(width, random));
  });
}

/** Chains of ten; one Issue in ten also needs something of another chain. */
function chains(size: number, random: Random): readonly GraphNode[] {
  const count = Math.ceil(size / 10);
  return numbered(size, (index) => {
    if (index < count) return [];
    const before = [index - count];
    const rowStart = Math.floor((index - count) / count) * count;
    return random() < 0.1 ? [...before, rowStart + pick(count, random)] : before;
  });
}

/** Lines side by side, each a row of forks: one Issue that two to ten need, and one that needs them all. */
function forkJoin(size: number, random: Random): readonly GraphNode[] {
  const edges: number[][] = [];
  const ends = new Map<number, number>();
  const lines = Math.round(Math.sqrt(size) / 2);
  for (let line = 0; edges.length < size; line = (line + 1) % lines) {
    const last = ends.get(line);
    const fork = edges.push(last === undefined ? [] : [last]) - 1;
    const width = Math.min(2 + pick(9, random), size - edges.length - 1);
    const middle = some(width, () => edges.push([fork]) - 1);
    ends.set(line, middle.length > 0 ? edges.push(middle) - 1 : fork);
  }
  return numbered(size, (index) => edges[index] ?? []);
}

/** Up to three dependencies among the thirty Issues before. */
function randomGraph(size: number, random: Random): readonly GraphNode[] {
  return numbered(size, (index) =>
    index === 0 ? [] : some(pick(4, random), () => Math.max(0, index - 1 - pick(30, random))),
  );
}

function numbered(size: number, dependencies: (index: number) => readonly number[]): readonly GraphNode[] {
  return Array.from({ length: size }, (_, index) => ({
    id: idOf(index),
    dependsOn: [...new Set(dependencies(index))].map(idOf),
  }));
}

function idOf(index: number): IssueId {
  const id = parseIssueId(`${String(index + 1)}-issue`);
  if (id === undefined) throw new Error('not an Issue id');
  return id;
}

function some<T>(count: number, make: () => T): T[] {
  return Array.from({ length: Math.max(0, count) }, make);
}

function pick(count: number, random: Random): number {
  return Math.floor(random() * count);
}

function normal(random: Random): number {
  return Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
}

/** mulberry32: small, and the same everywhere. */
function generator(seed: number): Random {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
