import { expect, test } from 'vitest';
import type { IssueFacts } from '../../src/event.js';
import { readBranches, readFacts } from '../../src/store/facts.js';
import { escalationCommit, landedCommit } from '../../src/store/integration.js';
import type { Journal } from '../../src/store/journal.js';
import { readSpecAt } from '../../src/store/read.js';
import { integrationRef, issueRef } from '../../src/store/refs.js';
import { filesAt, issueId, issueText, makeSpec, pathOf, spec, specFiles, type SpecRig } from './rig.js';

async function factsOf(rig: SpecRig): Promise<readonly IssueFacts[]> {
  const parsed = await readSpecAt(rig.git, await rig.tip(), spec);
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.failure));
  return readFacts(rig.git, { spec: parsed.value.spec, branches: await readBranches(rig.git, spec), wave: () => 1 });
}

async function attempted(rig: SpecRig): Promise<Journal> {
  const journal = await rig.journal('01-a');
  await journal.recordAttempt('claude');
  return journal;
}

async function escalated(rig: SpecRig): Promise<Journal> {
  const journal = await attempted(rig);
  await journal.recordVerdict({ verdict: 'fail', gates: [], findings: [] });
  await journal.escalate({ cause: 'blocked', packet: ['question: which one?'] });
  return journal;
}

async function publish(rig: SpecRig, journal: Journal): Promise<void> {
  const tip = await rig.tip();
  const commit = await escalationCommit(rig.facts, { tip, journal, saved: null });
  expect((await rig.git.moveRef(integrationRef(spec), commit, tip)).ok).toBe(true);
}

async function makeIssue(): Promise<SpecRig> {
  return makeSpec({ files: specFiles({ '01-a': issueText(), '02-b': issueText('wontfix') }) });
}

test('an Issue at rest is read from the integration branch, one in progress from its own', async () => {
  const rig = await makeIssue();
  expect(await factsOf(rig)).toMatchObject([
    { id: '01-a', state: 'ready', attempts: 0 },
    { id: '02-b', state: 'wontfix' },
  ]);
  const journal = await attempted(rig);
  expect((await factsOf(rig))[0]).toMatchObject({ state: 'in-progress', phase: 'working', attempts: 1 });
  await journal.recordVerdict({ verdict: 'pass', gates: [], findings: [] });
  expect((await factsOf(rig))[0]).toMatchObject({ state: 'in-progress', phase: 'integrating', attempts: 1 });
});

test('an escalated one asks its question, also before the integration branch shows it', async () => {
  const rig = await makeIssue();
  const journal = await escalated(rig);
  const asking = { state: 'needs-human', question: 'which one?', attempts: 1 };
  expect((await factsOf(rig))[0]).toMatchObject(asking);
  await publish(rig, journal);
  expect((await factsOf(rig))[0]).toMatchObject(asking);
});

test('an answered one is ready, until its next attempt', async () => {
  const rig = await makeIssue();
  await publish(rig, await escalated(rig));
  await rig.takeIn(null, { answers: true });
  expect((await factsOf(rig))[0]).toEqual({
    id: '01-a',
    title: 'An Issue',
    wave: 1,
    dependsOn: [],
    state: 'ready',
    attempts: 1,
    spending: { calls: 1, costUsd: 0, unknownCosts: 1, tokens: 0, unknownTokens: 1 },
  });
  await attempted(rig);
  expect((await factsOf(rig))[0]).toMatchObject({ state: 'in-progress', attempts: 2 });
});

test('one that landed and is to be done again is ready', async () => {
  const rig = await makeIssue();
  const journal = await attempted(rig);
  const code = await rig.codeWith(await rig.tip(), { 'a.txt': 'a' });
  await journal.commitWork({
    code,
    line: { files: 1, insertions: 1, deletions: 0, duration: '1 s', subjects: [] },
    gated: true,
    findings: [],
  });
  await journal.recordVerdict({ verdict: 'pass', code, gates: [], findings: [] });
  const tip = await rig.tip();
  const landed = await landedCommit(rig.facts, { tip, code, journal, gates: [] });
  expect((await rig.git.moveRef(integrationRef(spec), landed, tip)).ok).toBe(true);
  expect((await factsOf(rig))[0]).toMatchObject({ state: 'done', attempts: 1 });
  const files = await filesAt(rig, landed);
  await rig.takeIn({ ...files, [pathOf('01-a')]: files[pathOf('01-a')]?.replace('state: done', 'state: ready') ?? '' });
  expect((await factsOf(rig))[0]).toMatchObject({ state: 'ready', attempts: 1 });
});

test('what a person put on the branch, even a broken file, changes nothing of it', async () => {
  const rig = await makeIssue();
  await attempted(rig);
  await rig.commitOn(issueRef(spec, issueId('01-a')), { [pathOf('01-a')]: '---\nstate: done\nstate: [\n' });
  expect((await factsOf(rig))[0]).toMatchObject({ state: 'in-progress', attempts: 1 });
});
