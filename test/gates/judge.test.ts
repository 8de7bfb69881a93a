import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { createDriver } from '../../src/drivers/create.js';
import type { JudgePorts } from '../../src/gates/judging.js';
import { parseSpecSlug } from '../../src/issue.js';
import { systemClock } from '../../src/platform/clock.js';
import type { PromptGate } from '../../src/policy.js';
import { judgeContract, judgeDriver, readingChanges } from '../mutations/parts.js';
import { temporaryFolder } from '../rig/temp.js';
import { bench, tree } from './bench.js';

const review: PromptGate = {
  name: 'review',
  kind: 'prompt',
  rubric: { text: 'Is it good?', source: null },
  on: ['issue'],
  timeoutMs: 60_000,
  env: [],
  afterGreen: false,
};

/** Lets a program judge, in a folder of its own for each call. */
async function judgedBy(script: string, changed: readonly string[] = []): Promise<readonly string[]> {
  const { path: folder } = await temporaryFolder();
  let calls = 0;
  const driver = createDriver(
    { kind: 'command', name: 'judge', run: ['sh', '-c', script], env: [], reports: { cost: false, tokens: false } },
    { clock: systemClock, repository: folder, own: process.env },
  );
  const judges: JudgePorts = {
    driver: judgeDriver(driver),
    contract: judgeContract,
    driverHash: 'driver',
    spec: parseSpecSlug('s1') ?? never(),
    brief: () =>
      Promise.resolve({
        spec: { title: 's1', body: 'What is wanted.' },
        issue: { title: '01-store', body: 'Do it.' },
        diff: '+ a line',
        tree: tree('c'),
        baseCode: tree('b'),
        linesOf: () => Promise.resolve(null),
      }),
    async withReading(_tree, use) {
      calls += 1;
      const checkout = join(folder, `r${String(calls)}`);
      const temporary = join(folder, `t${String(calls)}`);
      await mkdir(checkout);
      await mkdir(temporary);
      await writeFile(join(checkout, 'a.txt'), 'a');
      const slot = { number: calls, portBase: 20_000, temporary };
      const changes = (): Promise<readonly string[]> => readingChanges(() => Promise.resolve(changed));
      return { ok: true, value: await use({ folder: checkout, slot, changes }) };
    },
    environment: () => ({ PATH: process.env['PATH'] ?? '' }),
  };
  const at = await bench({ judges });
  const { passed, gates } = await at.verifier.verify(at.request([review]));
  return [String(passed), gates[0]?.cause ?? 'pass', `${String(calls)} calls`];
}

function never(): never {
  throw new Error('impossible');
}

function saying(...lines: readonly string[]): string {
  return `cat > /dev/null; cat << 'END'\n${lines.join('\n')}\nEND`;
}

const pass = '{"verdict":"pass","findings":[]}';

describe('a judge', () => {
  test('passes and fails by its verdict', async () => {
    expect(await judgedBy(saying('I am not sure.', pass))).toEqual(['true', 'pass', '1 calls']);
    const fail = '{"verdict":"fail","findings":[{"message":"no test"}]}';
    expect(await judgedBy(saying('All of it passes.', fail))).toEqual(['false', 'failed', '1 calls']);
  });

  test.each([
    ['nothing', []],
    ['another word', ['{"verdict":"approved","findings":[]}']],
    ['half of one', ['{"verdict":"pa']],
    ['two that differ', ['{"verdict":"fail","findings":[]}', pass]],
  ])('without a readable verdict has not passed: %s', async (_what, lines) => {
    expect(await judgedBy(saying(...lines))).toEqual(['false', 'errored', '2 calls']);
  });

  test('that says pass in words alone has said nothing', async () => {
    expect(await judgedBy(saying('Verdict: PASS. This passes.'))).toEqual(['false', 'errored', '2 calls']);
  });

  test('that changed its checkout has no verdict', async () => {
    expect(await judgedBy(saying(pass), ['a.txt'])).toEqual(['false', 'errored', '1 calls']);
  });
});
