/**
 * `npm run mutations`: runs tests once for each protection of test/mutations/protections.ts with that one switched off, and
 * fails when a test that is named there passes all the same, or one outside of its area fails. Only rigs of tests can switch
 * one off; see test/mutations/parts.ts. `npm run mutations shrink secrets` looks at those two.
 */
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { runnerImport } from 'vite';
import { createVitest } from 'vitest/node';

const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const { protections } = await load('test/mutations/protections.ts');
const { filesOf, judgeMutation } = await load('test/mutations/verdict.ts');
const wanted = process.argv.slice(2);
const unknown = wanted.filter((name) => !Object.hasOwn(protections, name));
if (unknown.length > 0) throw new Error(`no such protection: ${unknown.join(', ')}`);

const started = Date.now();
// What waits for something that a weaker part never does is given up early.
const vitest = await createVitest('test', { root, watch: false, reporters: [{}], testTimeout: 8_000 });
await vitest.standalone();
const entries = Object.entries(protections).filter(([name]) => wanted.length === 0 || wanted.includes(name));
const known = new Map((await vitest.globTestSpecifications()).map((one) => [relative(one.moduleId), one]));
const counts = { passed: 0, failed: 0 };
const problems = [];

// With every protection on, all of them pass; without that, nothing below would mean anything.
const files = [...new Set(entries.flatMap(([, entry]) => filesOf(entry)))];
const control = await runWithout(null, files);
problems.push(
  ...files.filter((file) => !known.has(file)).map((file) => `there is no such file: ${file}`),
  ...control.broken,
  ...control.ran.filter(({ failed }) => failed).map(({ test }) => `fails with every protection on: ${test}`),
);
if (problems.length > 0) counts.failed += 1;
for (const [name, entry] of entries) {
  const { ran, broken, seconds } = await runWithout(name, filesOf(entry));
  const verdict = judgeMutation(entry, ran);
  const found = [...broken, ...verdict.problems];
  counts[found.length === 0 ? 'passed' : 'failed'] += 1;
  problems.push(...found.map((problem) => `${name}: ${problem}`));
  const noticed = `${verdict.noticed} of ${verdict.named} named tests fail, ${verdict.further} more of its area`;
  console.log(`${found.length === 0 ? 'ok ' : 'BAD'} ${name.padEnd(20)} ${noticed}, of ${ran.length} (${seconds} s)`);
}
await vitest.close();
for (const problem of problems) console.log(problem);
console.log(
  `${counts.passed} protections proved, ${counts.failed} not, ${((Date.now() - started) / 1000).toFixed(0)} s`,
);
const report = process.env['GIRO_MUTATIONS_REPORT'];
if (report !== undefined) writeFileSync(report, JSON.stringify(counts));
process.exitCode = counts.failed === 0 ? 0 : 1;

async function runWithout(name, names) {
  const begun = Date.now();
  const specifications = names.flatMap((file) => known.get(file) ?? []);
  vitest.provide('weakened', name);
  const result = await vitest.runTestSpecifications(specifications);
  // It tells of files of earlier runs too.
  const testModules = result.testModules.filter(({ moduleId }) => names.includes(relative(moduleId)));
  const broken = [
    ...testModules.flatMap((module) =>
      module.errors().length === 0 ? [] : [`cannot run: ${relative(module.moduleId)}`],
    ),
    ...result.unhandledErrors.map((error) => `an error outside of every test: ${error?.message ?? error}`),
  ];
  const ran = testModules.flatMap((module) =>
    [...module.children.allTests()].flatMap((test) => {
      const { state } = test.result();
      if (state === 'skipped') return [];
      return [{ test: `${relative(module.moduleId)} > ${test.fullName}`, failed: state !== 'passed' }];
    }),
  );
  return { ran, broken, seconds: ((Date.now() - begun) / 1000).toFixed(0) };
}

function relative(file) {
  return path.relative(root, file).split(path.sep).join('/');
}

async function load(file) {
  return (await runnerImport(path.join(root, file), { root, configFile: false })).module;
}
