import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { createDriver } from '../../src/drivers/create.js';
import { readOutput } from '../../src/drivers/envelope.js';
import { workerContract } from '../../src/drivers/worker.js';
import { systemClock } from '../../src/platform/clock.js';
import { judgeContract } from '../mutations/parts.js';
import { stage } from './request.js';

const pass = '{"verdict":"pass","findings":[]}';
const unknown = { costUsd: null, tokens: null };

test.each([
  ['a valid one', `Here: ${pass}`, 'valid'],
  ['the same one twice', `${pass}\n${pass}`, 'valid'],
  ['nothing', '', 'absent'],
  ['prose', 'PASS. verdict: pass', 'absent'],
  ['one that is cut off', '{"verdict": "pass"', 'absent'],
  ['two that contradict each other', `{"verdict":"fail","findings":[]}\n${pass}`, 'invalid'],
  [
    'one that is cut off behind a quoted one',
    `The file says ${pass}\n{"verdict":"fail","findings":[{"message":"no`,
    'invalid',
  ],
  ['one that is cut off at once behind a quoted one', `The file says ${pass}\n{"verd`, 'invalid'],
  ['one that is cut off around a quoted one', `{"verdict":"fail","findings":[{"message":"m"},${pass}`, 'invalid'],
  ['one behind code with an open brace', `function f() {\n${pass}`, 'valid'],
  ['one behind the form that it should have', `{"verdict": "pass" | "fail", "findings": [...]}\n${pass}`, 'valid'],
  ['another word', '{"verdict":"approved","findings":[]}', 'invalid'],
  ['no findings', '{"verdict":"pass"}', 'invalid'],
  ['a finding without a message', '{"verdict":"fail","findings":[{"file":"a"}]}', 'invalid'],
  ['a line that is none', '{"verdict":"fail","findings":[{"message":"m","line":0}]}', 'invalid'],
  ['two verdicts in one', '{"verdict":"fail","findings":[],"verdict":"pass"}', 'invalid'],
  ['the envelope of a worker', '{"status":"done"}', 'absent'],
  ['trouble', '{"status":"unavailable","reason":"auth"}', 'unavailable'],
])('the envelope of a judge: %s', (_name, output, kind) => {
  expect(readOutput(output, judgeContract).reading.kind).toBe(kind);
});

test('what a call cost is read from the closing line or the envelope; what is not plainly a number is unknown', () => {
  const line = (more: object): string => JSON.stringify({ type: 'result', is_error: false, result: pass, ...more });
  const counted = { input_tokens: 10, output_tokens: 5, cache_read_input_tokens: 100 };
  const told = readOutput(line({ total_cost_usd: 0.5, usage: counted, modelUsage: { big: {} } }), judgeContract);
  expect([told.usage, told.model]).toEqual([{ costUsd: 0.5, tokens: 115 }, 'big']);
  expect(readOutput(line({ total_cost_usd: 'much', usage: 7 }), judgeContract).usage).toEqual(unknown);
  expect(readOutput(line({}), judgeContract).usage).toEqual(unknown);
  const own = '{"status":"done","usage":{"cost-usd":0.25,"tokens":7}}';
  expect(readOutput(own, workerContract).usage).toEqual({ costUsd: 0.25, tokens: 7 });
  expect(readOutput('{"status":"done","usage":{"cost-usd":-1}}', workerContract).usage).toEqual(unknown);
});

test('the scripted driver plays judges by gate and subject, one scene for each call', async () => {
  const at = await stage({ role: 'judge', gate: 'review' });
  const scenes = [
    { output: ['hm'] },
    { envelope: JSON.parse(pass), usage: { costUsd: 0.1, tokens: null }, model: 'm' },
  ];
  await writeFile(join(at.repository, 's.json'), JSON.stringify({ judges: { review: { '01-store': scenes } } }));
  const driver = createDriver(
    { kind: 'scripted', name: 'demo', script: 's.json', env: [], reports: { cost: false, tokens: false } },
    { clock: systemClock, repository: at.repository, own: {} },
  );
  const first = await driver.run(at.request, judgeContract);
  expect(first).toMatchObject({
    result: { kind: 'failed', reason: 'agent ended without an envelope' },
    usage: unknown,
  });
  const second = await driver.run(at.request, judgeContract);
  expect(second).toMatchObject({
    result: { kind: 'finished', envelope: { verdict: 'pass', findings: [] } },
    usage: { costUsd: 0.1, tokens: null },
    model: 'm',
  });
  const third = await driver.run(at.request, judgeContract);
  expect(third.result).toEqual({ kind: 'failed', reason: 'no scripted judgement 3 of gate review for 01-store' });
});
