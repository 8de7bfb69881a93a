/** A power cut at any instant: what was not synced is gone, and the same command goes on, to the same end. */
import { execFile } from 'node:child_process';
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';
import { privateConfig, silencingOptions } from '../../src/worktree/git-environment.js';
import type { Project } from '../rig/giro.js';
import { makeRepository, type TestRepository } from '../rig/repository.js';
import { copyDisk, kindsOfLoss, losePower, type Loss } from './power.js';
import { faultsOf, makeStory, runStory } from './story.js';

/** Cuts the power right before a step; gives what is wrong then, and at the end of the next run. */
async function faultsAfter(step: string, loss: Loss): Promise<readonly string[]> {
  const story = await makeStory();
  const roots = [join(story.path, '.git'), join(story.folder, 'cache')];
  await mkdir(join(story.folder, 'cache'), { recursive: true });
  const disk = await copyDisk(roots, join(story.folder, 'disk'));
  const { signal, stderr } = await runStory(story, step, { disk: disk.copies });
  if (signal !== 'SIGKILL') return [`never came to ${step}: ${stderr}`];
  await losePower(roots, disk, loss);
  const broken = await missing(story);
  if (broken !== '') return [`after the power cut: ${broken}`];
  const { code, stderr: said, stdout } = await runStory(story, null);
  if (code !== 0) return [`exit ${String(code)}: ${said}${stdout.slice(-800)}`];
  return [...(await faultsOf(story, 1)), ...[await missing(story)].filter((fault) => fault !== '')];
}

/** What git finds missing behind any ref. */
async function missing(story: Project): Promise<string> {
  const said = await story
    .git('fsck', '--full', '--no-dangling', '--no-reflogs', '--no-progress')
    .catch((error: unknown) => String(error));
  return said
    .split('\n')
    .filter((line) => /missing|broken|invalid|error|fatal/.test(line))
    .join('; ');
}

const sample = [
  ['start agent#2', 'all that is not synced'],
  ['update heads/giro#3', 'objects before refs'],
  ['start gate#6', 'what files hold'],
] as const;

describe('the power is cut', () => {
  test.each(sample)('before %s, and the disk loses %s', async (step, loss) => {
    expect(await faultsAfter(step, loss)).toEqual([]);
  });
});

/** How often git brought something to the disk, as it says itself. */
async function flushesOf(repository: TestRepository, args: readonly string[], env: NodeJS.ProcessEnv): Promise<number> {
  const trace = join(repository.folder, 'trace');
  await rm(trace, { force: true });
  const all = { PATH: process.env['PATH'], GIT_TRACE2_EVENT: trace, ...env };
  await promisify(execFile)('git', args, { cwd: repository.path, env: all });
  return Number(/"key":"fsync\/hardware-flush","value":"(\d+)"/.exec(await readFile(trace, 'utf8'))?.[1] ?? 0);
}

test('git itself syncs the refs that it moves and the objects that it writes, with the settings that giro gives it', async () => {
  const repository = await makeRepository();
  const own = join(repository.folder, 'own');
  await mkdir(join(own, 'refs'), { recursive: true });
  await writeFile(join(own, 'HEAD'), 'ref: refs/heads/none\n');
  await writeFile(join(own, 'config'), privateConfig('sha1', null));
  await writeFile(join(repository.path, 'new.txt'), 'new\n');
  const objects = join(repository.path, '.git/objects');
  const apart = { GIT_DIR: own, GIT_WORK_TREE: repository.path, GIT_OBJECT_DIRECTORY: objects };
  const move = ['update-ref', 'refs/heads/giro/s1', 'HEAD'];
  expect(await flushesOf(repository, [...silencingOptions, ...move], {})).toBeGreaterThan(0);
  expect(await flushesOf(repository, ['add', '-A'], apart)).toBeGreaterThan(0);
  expect(await flushesOf(repository, ['write-tree'], apart)).toBeGreaterThan(0);
});

/** The whole of it, with `npm run crash`. */
describe.runIf(process.env['GIRO_CRASH_REPORT'] !== undefined)('at many instants', () => {
  test('the same end is reached', { timeout: 3600_000 }, async () => {
    const failures: string[] = [];
    const rows = ['| lost | cuts | same end |', '|---|---|---|'];
    for (const loss of kindsOfLoss) {
      let held = 0;
      const steps = Array.from({ length: 25 }, (_, at) => `any#${String(90 + at * 61)}`);
      for (const step of steps) {
        const faults = await faultsAfter(step, loss);
        if (faults.length === 0) held += 1;
        else failures.push(`${step}, ${loss}: ${faults.join('; ')}`);
      }
      rows.push(`| ${loss} | ${String(steps.length)} | ${String(held)} of ${String(steps.length)} |`);
    }
    await writeFile(`${process.env['GIRO_CRASH_REPORT'] ?? ''}.power`, `${rows.join('\n')}\n`);
    expect(failures).toEqual([]);
  });
});
