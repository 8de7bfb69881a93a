/** Kill -9 at every kind of step: the same command goes on, to the same end (L8). `npm run crash` does all of them. */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { findCgroups } from '../../src/platform/cgroups.js';
import { unchangedBy } from '../rig/giro.js';
import { faultsOf, makeStory, runStory } from './story.js';

/** One kind of step each, of which the one in the middle of a run is taken. */
const sample = [
  'create heads/giro#1',
  'event spec.snapshotted#1',
  'create heads/giro-issue#2',
  'start agent#3',
  'event attempt.started#2',
  'rename facts.json#4',
  'git add#2',
  'event attempt.finished#2',
  'update heads/giro-issue#3',
  'start gate#4',
  'event gate.finished#5',
  'rename verdict#3',
  'event attempt.judged#3',
  'event candidate.made#2',
  'update heads/giro#2',
  'event issue.integrated#3',
  'event candidate.conflicted#1',
  'event spec.plan.started#1',
  'event spec.planned#1',
  'event spec.validated#2',
  'update heads/giro#10',
  'create notes#1',
  'remove trash#1',
  'remove short lock#5',
  ...(findCgroups().kind === 'none' ? [] : ['mkdir cgroup#3']),
];

/** Kills giro before one step after the other, then lets it run to its end. */
async function faultsAfter(
  kills: readonly string[],
): Promise<{ readonly reached: boolean; readonly faults: readonly string[] }> {
  const story = await makeStory();
  return unchangedBy(story, async () => {
    let killed = 0;
    for (const kill of kills) {
      const { signal, code, stderr } = await runStory(story, kill);
      if (signal === 'SIGKILL') killed += 1;
      else if (code !== 0) return { reached: killed > 0, faults: [`exit ${String(code)}: ${stderr}`] };
    }
    const last = await runStory(story, null);
    if (last.code !== 0)
      return { reached: killed > 0, faults: [`exit ${String(last.code)}: ${last.stderr}${last.stdout.slice(-800)}`] };
    return { reached: killed > 0, faults: await faultsOf(story, killed) };
  });
}

describe('killed once', () => {
  test.each(sample)('before %s', async (kill) => {
    expect(await faultsAfter([kill])).toEqual({ reached: true, faults: [] });
  });
});

describe('killed again while it recovers', () => {
  test.each([
    ['event attempt.finished#1', 'any#120'],
    ['event candidate.made#1', 'any#300'],
    ['update heads/giro#4', 'event run.recovered#1'],
    ['event spec.plan.started#1', 'any#98'],
  ])('before %s, then before %s', async (first, second) => {
    expect(await faultsAfter([first, second])).toEqual({ reached: true, faults: [] });
  });
});

/** The whole of it, with `npm run crash`: every kind of step at its first, middle and last, once and twice in a row. */
describe.runIf(process.env['GIRO_CRASH_REPORT'] !== undefined)('every kind of step', () => {
  test('leads to the same end', { timeout: 3 * 3600_000 }, async () => {
    const counts = await stepsOfStory();
    const rows: string[] = ['| step | in a run | killed at | once | and once more |', '|---|---|---|---|---|'];
    const failures: string[] = [];
    const only = process.env['GIRO_CRASH_KIND'] ?? '';
    for (const [kind, count] of [...counts]
      .filter(([name]) => name.includes(only))
      .sort(([left], [right]) => (left < right ? -1 : 1))) {
      const points = [...new Set([1, Math.ceil(count / 2), count])];
      const cells: string[] = [];
      for (const again of [[], [`any#${String(97 + (count % 300))}`]]) {
        let held = 0;
        for (const point of points) {
          const kills = [`${kind}#${String(point)}`, ...again];
          const { faults } = await faultsAfter(kills);
          if (faults.length === 0) held += 1;
          else failures.push(`${kills.join(', then ')}: ${faults.join('; ')}`);
        }
        cells.push(`${String(held)} of ${String(points.length)}`);
      }
      rows.push(`| ${kind} | ${String(count)} | ${points.join(', ')} | ${cells.join(' | ')} |`);
    }
    await writeFile(process.env['GIRO_CRASH_REPORT'] ?? '', `${rows.join('\n')}\n`);
    expect(failures).toEqual([]);
  });
});

async function stepsOfStory(): Promise<ReadonlyMap<string, number>> {
  const story = await makeStory();
  const file = join(story.folder, 'steps');
  expect((await runStory(story, null, { steps: file })).code).toBe(0);
  const counts = new Map<string, number>();
  for (const kind of (await readFile(file, 'utf8')).trim().split('\n')) counts.set(kind, (counts.get(kind) ?? 0) + 1);
  return counts;
}
