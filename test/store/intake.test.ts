import { describe, expect, test } from 'vitest';
import { parseSpecFolder } from '../../src/config/issue-file.js';
import { historyOf } from '../../src/config/splice.js';
import { budgetUsed, lastAttempt, readHistory } from '../../src/store/history.js';
import { readBranches } from '../../src/store/facts.js';
import { firstIntake, laterIntake, type Intake } from '../../src/store/intake.js';
import { escalationCommit, landedCommit } from '../../src/store/integration.js';
import { integrationRef, issueRef } from '../../src/store/refs.js';
import { checkpointOf } from '../../src/store/trailers.js';
import { filesAt, issueId, issueText, makeSpec, pathOf, spec, specFiles, specText, type SpecRig } from './rig.js';

const at = '2030-01-01T00:00:00.000Z';
const specPath = `docs/specs/${spec}/SPEC.md`;

async function stateOf(rig: SpecRig, id: string): Promise<string> {
  return (await rig.issue(id)).state;
}

/** The problems that checking what was taken in would report. */
function problemsOf(intake: Intake): readonly string[] {
  const files = [...intake.files].map(([path, content]) => ({ path, bytes: Buffer.from(content) }));
  const parsed = parseSpecFolder({ slug: spec, files });
  return parsed.ok ? [] : parsed.failure.diagnostics.map((one) => one.message);
}

/** Attempts an Issue, and escalates it as a run does. */
async function escalate(rig: SpecRig, id: string): Promise<void> {
  const journal = await rig.journal(id);
  await journal.recordAttempt('claude');
  await journal.recordVerdict({ verdict: 'fail', gates: [], findings: [{ message: 'red' }] });
  await journal.escalate({ cause: 'budget-spent', packet: ['question: what now?'] });
  const tip = await rig.tip();
  await move(rig, await escalationCommit(rig.facts, { tip, journal, saved: null }));
}

/** Attempts an Issue, and lands it. */
async function land(rig: SpecRig, id: string): Promise<void> {
  const journal = await rig.journal(id);
  const { commit } = await journal.recordAttempt('claude');
  const code = await rig.codeWith(commit, { [`${id}.txt`]: id });
  const line = { files: 1, insertions: 1, deletions: 0, duration: '1 s', subjects: [] };
  await journal.commitWork({ code, line, gated: true, findings: [] });
  await journal.recordVerdict({ verdict: 'pass', code, gates: [], findings: [] });
  await move(rig, await landedCommit(rig.facts, { tip: await rig.tip(), code, journal, gates: [] }));
}

async function move(rig: SpecRig, to: Awaited<ReturnType<SpecRig['tip']>>): Promise<void> {
  const moved = await rig.git.moveRef(integrationRef(spec), to, await rig.tip());
  expect(moved.ok).toBe(true);
}

describe('the first snapshot', () => {
  test('makes draft active; in-progress and needs-human become ready; done and wontfix stay', async () => {
    const states = ['ready', 'in-progress', 'needs-human', 'done', 'wontfix'];
    const issues = Object.fromEntries(states.map((state, index) => [`0${String(index + 1)}-a`, issueText(state)]));
    const rig = await makeSpec({ files: specFiles(issues) });
    const now = await Promise.all(states.map((_, index) => stateOf(rig, `0${String(index + 1)}-a`)));
    expect(now).toEqual(['ready', 'ready', 'ready', 'done', 'wontfix']);
    expect(await rig.read(await rig.tip(), specPath)).toBe(specText('active'));
  });

  test('takes a checkpoint of another life out', async () => {
    const files = specFiles({ '01-a': issueText('in-progress', 'attempt: 3\nphase: judging\n') });
    const rig = await makeSpec({ files });
    expect(await rig.read(await rig.tip(), pathOf('01-a'))).toBe(issueText('ready'));
  });

  test('keeps what was read, byte for byte, as its second parent: a child of the commit before', async () => {
    const odd = Buffer.concat([
      Buffer.from('\uFEFF---\r\nstate: in-progress # mine\r\n---\r\n# A\r\n\r\nText'),
      Buffer.from([0x20]),
    ]);
    const files = {
      ...specFiles({}),
      [pathOf('01-a')]: odd,
      [`docs/specs/${spec}/notes/x.bin`]: Buffer.from([0, 255, 10]),
    };
    const rig = await makeSpec({ files });
    const { parents } = await rig.git.readCommit(await rig.tip());
    expect(parents[0]).toBe(rig.facts.base);
    const read = parents[1];
    if (read === undefined) throw new Error('no second parent');
    expect((await rig.git.readCommit(read)).parents).toEqual([rig.facts.base]);
    for (const [path, content] of Object.entries(files)) {
      const entry = await rig.git.readPath(read, path);
      expect(entry === null ? null : await rig.git.readBlob(entry.oid)).toEqual(Buffer.from(content));
    }
    // Ours differs only in the state, in a file with its own line ends.
    expect(await rig.read(await rig.tip(), pathOf('01-a'))).toBe(odd.toString().replace('in-progress', 'ready'));
  });

  test('a History of another life stays, and its budget is given back', async () => {
    const history = '\n## History\n\n### Attempt 4 · 2029-01-01T00:00:00Z · claude\nbase aaaaaaa\nverdict: fail\n';
    const rig = await makeSpec({ files: specFiles({ '01-a': `${issueText('needs-human')}${history}` }) });
    const entries = readHistory((await rig.issue('01-a')).history);
    expect([lastAttempt(entries), budgetUsed(entries)]).toEqual([4, 0]);
  });

  test.each([
    ['frontmatter that is never closed', '---\nstate: in-progress\n# A\n\nText.\n'],
    ['a key twice', '---\nstate: in-progress\nstate: ready\n---\n# A\n\nText.\n'],
    ['conflict markers', '---\nstate: in-progress\n---\n# A\n\n<<<<<<< ours\na\n=======\nb\n>>>>>>> theirs\n'],
    ['bytes that are not UTF-8', Buffer.from([0x2d, 0x2d, 0x2d, 0x0a, 0xff])],
  ])('%s is left for the check to report', (_name, content) => {
    for (const path of [pathOf('01-a'), specPath]) {
      const files = { ...specFiles({ '01-a': issueText() }), [path]: content };
      const intake = firstIntake(
        Object.entries(files).map(([name, text]) => ({ path: name, bytes: Buffer.from(text) })),
        at,
      );
      expect(intake.files.get(path)).toEqual(Buffer.from(content));
      expect(problemsOf(intake).length).toBeGreaterThan(0);
    }
  });
});

describe('a later run', () => {
  test('finds nothing in a checkout that did not change', async () => {
    const files = specFiles({ '01-a': issueText('in-progress'), '02-b': issueText() });
    const rig = await makeSpec({ files });
    const tip = await rig.tip();
    expect(await rig.takeIn(files)).toMatchObject({ edited: [], removed: [], answered: [] });
    await escalate(rig, '02-b');
    await land(rig, '01-a');
    expect(await rig.takeIn(files)).toMatchObject({ edited: [], removed: [], answered: [] });
    expect(await rig.takeIn(null)).toMatchObject({ edited: [], removed: [], answered: [] });
    expect(tip).not.toBe(await rig.tip());
  });

  test("giro's own versions in the checkout are no edits, whichever branch they come from", async () => {
    const files = specFiles({ '01-a': issueText(), '02-b': issueText() });
    const rig = await makeSpec({ files });
    await escalate(rig, '02-b');
    const seen = await filesAt(rig, await rig.tip());
    await land(rig, '01-a');
    for (const version of [seen, await filesAt(rig, await rig.tip())]) {
      expect(await rig.takeIn(version)).toMatchObject({ edited: [], removed: [] });
    }
    const branch = await rig.branch('02-b');
    if (branch === null) throw new Error('no branch');
    expect(
      await rig.takeIn({ ...files, [pathOf('02-b')]: (await rig.read(branch, pathOf('02-b'))) ?? '' }),
    ).toMatchObject({ edited: [] });
  });

  test('line ends that git converted are no edit; a real one beside them is', async () => {
    const files = specFiles({ '01-a': issueText() });
    const rig = await makeSpec({ files });
    await escalate(rig, '01-a');
    const converted = (content: Readonly<Record<string, string>>) =>
      Object.fromEntries(Object.entries(content).map(([path, text]) => [path, text.replaceAll('\n', '\r\n')]));
    expect(await rig.takeIn(converted(files))).toMatchObject({ edited: [] });
    expect(await rig.takeIn(converted(await filesAt(rig, await rig.tip())))).toMatchObject({ edited: [] });
    const edited = converted(specFiles({ '01-a': issueText('ready', '', 'Do it well.') }));
    expect(await rig.takeIn(edited)).toMatchObject({ edited: [pathOf('01-a')], answered: [pathOf('01-a')] });
    expect(await rig.read(await rig.tip(), pathOf('01-a'))).toContain('Do it well.\r\n\r\n## History\r\n');
  });

  test('takes a body and depends-on in, and keeps History and state', async () => {
    const rig = await makeSpec({ files: specFiles({ '01-a': issueText(), '02-b': issueText() }) });
    await escalate(rig, '01-a');
    const before = await rig.issue('01-a');
    const edited = specFiles({ '01-a': issueText('ready', 'depends-on: [2]\n', 'More.'), '02-b': issueText() });
    const intake = await rig.takeIn(edited);
    expect(intake).toMatchObject({ edited: [pathOf('01-a')], removed: [], answered: [pathOf('01-a')] });
    const after = await rig.issue('01-a');
    expect(after).toMatchObject({ state: 'ready', dependsOn: ['02-b'] });
    expect(after.body).toContain('More.');
    expect(after.history.startsWith(before.history.trimEnd())).toBe(true);
    expect(budgetUsed(readHistory(after.history))).toBe(0);
    const { message } = await rig.git.readCommit(await rig.tip());
    expect(checkpointOf(message)).toBe('import');
  });

  test('an Issue in progress takes an edit too, without a new budget', async () => {
    const rig = await makeSpec({ files: specFiles({ '01-a': issueText() }) });
    const journal = await rig.journal('01-a');
    await journal.recordAttempt('claude');
    expect(await rig.takeIn(specFiles({ '01-a': issueText('ready', '', 'Otherwise.') }))).toMatchObject({
      edited: [pathOf('01-a')],
      answered: [],
    });
    const again = await rig.journal('01-a');
    expect(again.issue.body).toContain('Otherwise.');
    expect(again.budgetUsed).toBe(1);
  });

  test('a version that was taken in before, put back, is an edit', async () => {
    const first = specFiles({ '01-a': issueText('ready', '', 'First.') });
    const rig = await makeSpec({ files: first });
    await rig.takeIn(specFiles({ '01-a': issueText('ready', '', 'Second.') }));
    expect(await rig.takeIn(first)).toMatchObject({ edited: [pathOf('01-a')] });
    expect((await rig.issue('01-a')).body).toContain('First.');
  });

  test('what the person changed on giro/<spec> itself is there already', async () => {
    const rig = await makeSpec({ files: specFiles({ '01-a': issueText() }) });
    const mine = issueText('ready', '', 'Mine.');
    await rig.commitOn(integrationRef(spec), { [pathOf('01-a')]: mine });
    expect(await rig.takeIn(specFiles({ '01-a': issueText() }))).toMatchObject({ edited: [] });
    expect(await rig.takeIn(specFiles({ '01-a': mine }, specText('active')))).toMatchObject({ edited: [] });
  });

  test('a new Issue is taken in; one in progress elsewhere starts anew here', async () => {
    const rig = await makeSpec({ files: specFiles({ '01-a': issueText() }) });
    const history = '\n## History\n\n### Attempt 1 · 2029-01-01T00:00:00Z · claude\nbase aaaaaaa\n';
    const files = specFiles({
      '01-a': issueText(),
      '02-b': issueText(),
      '03-c': `${issueText('in-progress')}${history}`,
    });
    expect(await rig.takeIn(files)).toMatchObject({ edited: [pathOf('02-b'), pathOf('03-c')], removed: [] });
    expect(await stateOf(rig, '02-b')).toBe('ready');
    const resumed = await rig.issue('03-c');
    expect([resumed.state, budgetUsed(readHistory(resumed.history))]).toEqual(['ready', 0]);
  });

  test('a new Issue with a number that is taken is reported, with the next free one', async () => {
    const rig = await makeSpec({ files: specFiles({ '01-a': issueText(), '02-b': issueText() }) });
    await land(rig, '02-b');
    const files = specFiles({ '01-a': issueText(), '02-c': issueText() });
    const tip = await rig.tip();
    const intake = await laterIntakeOf(rig, files);
    expect(problemsOf(intake).join()).toContain('number 2 is also used by');
    expect(await rig.tip()).toBe(tip);
  });

  test('a removed file is taken out and reported; an integrated Issue and SPEC.md stay', async () => {
    const issues = { '01-a': issueText(), '02-b': issueText() };
    const notes = `docs/specs/${spec}/notes.md`;
    const rig = await makeSpec({ files: { ...specFiles(issues), [notes]: 'notes' } });
    await land(rig, '01-a');
    const intake = await rig.takeIn({});
    expect([...intake.removed].sort()).toEqual([pathOf('02-b'), notes]);
    expect(Object.keys(await filesAt(rig, await rig.tip())).sort()).toEqual([specPath, pathOf('01-a')].sort());
    expect(await rig.takeIn({})).toMatchObject({ edited: [], removed: [] });
  });

  test('what the last intake did not have is not removed by its absence', async () => {
    const rig = await makeSpec({ files: specFiles({ '01-a': issueText() }) });
    await rig.commitOn(integrationRef(spec), { [pathOf('02-planned')]: issueText() });
    expect(await rig.takeIn(specFiles({ '01-a': issueText() }))).toMatchObject({ edited: [], removed: [] });
    // Without a folder nothing was read, so nothing can be missed later.
    await escalate(rig, '01-a');
    expect(await rig.takeIn(null, { answers: true })).toMatchObject({ removed: [], answered: [pathOf('01-a')] });
    expect((await rig.git.readCommit(await rig.tip())).parents).toHaveLength(1);
    expect(await rig.takeIn(specFiles({ '01-a': issueText() }))).toMatchObject({ edited: [], removed: [] });
  });

  test('SPEC.md is taken in, with its own state', async () => {
    const rig = await makeSpec({ files: specFiles({ '01-a': issueText() }) });
    const intake = await rig.takeIn(specFiles({ '01-a': issueText() }, specText('done', 'More is wanted.')));
    expect(intake.edited).toEqual([specPath]);
    expect(await rig.read(await rig.tip(), specPath)).toBe(specText('active', 'More is wanted.'));
  });

  test('an edit of what is integrated is taken in and reported, and is not run again', async () => {
    const rig = await makeSpec({ files: specFiles({ '01-a': issueText() }) });
    await land(rig, '01-a');
    const intake = await rig.takeIn(specFiles({ '01-a': issueText('ready', '', 'Too late.') }));
    expect(intake).toMatchObject({ edited: [pathOf('01-a')], editedAfterwards: [pathOf('01-a')] });
    expect(await rig.issue('01-a')).toMatchObject({ state: 'done' });
    expect((await rig.issue('01-a')).body).toContain('Too late.');
  });

  test.each([
    ['a word that is no state', issueText('finished')],
    ['no state', '---\ntouches: [a]\n---\n# A\n\nText.\n'],
    ['frontmatter that is never closed', '---\nstate: ready\n# A\n\nText.\n'],
  ])('%s is reported, not mended', async (_name, text) => {
    const rig = await makeSpec({ files: specFiles({ '01-a': issueText() }) });
    expect(problemsOf(await laterIntakeOf(rig, specFiles({ '01-a': text })))).not.toEqual([]);
    const broken = await laterIntakeOf(rig, {
      ...specFiles({ '01-a': issueText() }),
      [specPath]: text.replace('touches', 'nothing'),
    });
    expect(problemsOf(broken)).not.toEqual([]);
  });
});

describe('a state that the person changed', () => {
  test('needs-human to ready is an answer', async () => {
    const rig = await makeSpec({ files: specFiles({ '01-a': issueText() }) });
    await escalate(rig, '01-a');
    const asking = (await filesAt(rig, await rig.tip()))[pathOf('01-a')] ?? '';
    const intake = await rig.takeIn(specFiles({ '01-a': asking.replace('needs-human', 'ready') }));
    expect(intake.answered).toEqual([pathOf('01-a')]);
    const entries = readHistory((await rig.issue('01-a')).history);
    expect(entries.map((entry) => entry.kind)).toEqual(['attempt', 'escalated', 'answered']);
  });

  test.each(['ready', 'needs-human'])('wontfix, from a %s Issue', async (from) => {
    const rig = await makeSpec({ files: specFiles({ '01-a': issueText() }) });
    if (from === 'needs-human') await escalate(rig, '01-a');
    expect(await rig.takeIn(specFiles({ '01-a': issueText('wontfix') }))).toMatchObject({ answered: [] });
    expect(await stateOf(rig, '01-a')).toBe('wontfix');
    // And back, with a whole budget.
    await rig.takeIn(specFiles({ '01-a': issueText('ready') }));
    expect(await stateOf(rig, '01-a')).toBe('ready');
    expect(budgetUsed(readHistory((await rig.issue('01-a')).history))).toBe(0);
  });

  test("undo: giro's version with done set to ready runs again, with a whole budget", async () => {
    const files = specFiles({ '01-a': issueText() });
    const rig = await makeSpec({ files });
    await land(rig, '01-a');
    const done = (await filesAt(rig, await rig.tip()))[pathOf('01-a')] ?? '';
    expect(done).toContain('state: done');
    await rig.takeIn(specFiles({ '01-a': done.replace('state: done', 'state: ready') }));
    expect(await stateOf(rig, '01-a')).toBe('ready');
    const entries = readHistory((await rig.issue('01-a')).history);
    expect([budgetUsed(entries), lastAttempt(entries)]).toEqual([0, 1]);
  });

  test('what is integrated cannot become wontfix, and a state that giro alone sets is not taken over', async () => {
    const rig = await makeSpec({ files: specFiles({ '01-a': issueText(), '02-b': issueText() }) });
    await land(rig, '01-a');
    const files = specFiles({
      '01-a': issueText('wontfix'),
      '02-b': issueText('in-progress', 'attempt: 7\nphase: integrating\n'),
    });
    await rig.takeIn(files);
    expect([await stateOf(rig, '01-a'), await stateOf(rig, '02-b')]).toEqual(['done', 'ready']);
    expect((await rig.issue('02-b')).checkpoint).toBeUndefined();
  });

  test('done is the word of the person', async () => {
    const rig = await makeSpec({ files: specFiles({ '01-a': issueText() }) });
    await rig.takeIn(specFiles({ '01-a': issueText('done') }));
    expect(await stateOf(rig, '01-a')).toBe('done');
  });
});

describe('an answer', () => {
  test('of a run that ended gives every escalated Issue its budget back', async () => {
    const files = specFiles({ '01-a': issueText(), '02-b': issueText(), '03-c': issueText() });
    const rig = await makeSpec({ files });
    await escalate(rig, '01-a');
    await escalate(rig, '02-b');
    expect((await rig.takeIn(files)).answered).toEqual([]);
    const intake = await rig.takeIn(files, { answers: true });
    expect(intake.answered).toEqual([pathOf('01-a'), pathOf('02-b')]);
    const history = historyOf((await rig.read(await rig.tip(), pathOf('01-a'))) ?? '');
    expect(budgetUsed(readHistory(history))).toBe(0);
    expect(history).toContain('run again; the budget begins anew');
  });

  test('in a run that goes on, what was edited or fixed is taken up, and nothing else', async () => {
    const issues = { '01-a': issueText(), '02-b': issueText(), '03-c': issueText() };
    const rig = await makeSpec({ files: specFiles(issues) });
    for (const id of Object.keys(issues)) await escalate(rig, id);
    await rig.commitOn(issueRef(spec, issueId('02-b')), { 'fix.txt': 'by hand' });
    const intake = await rig.takeIn(specFiles({ ...issues, '01-a': issueText('ready', '', 'Clearer.') }));
    expect(intake.answered).toEqual([pathOf('01-a'), pathOf('02-b')]);
    expect(await stateOf(rig, '03-c')).toBe('needs-human');
    expect((await rig.issue('02-b')).history).toContain('fixed by hand on its branch');
  });

  test('an Issue file that the person edited on the branch is taken in', async () => {
    const rig = await makeSpec({ files: specFiles({ '01-a': issueText() }) });
    await escalate(rig, '01-a');
    const branch = await rig.branch('01-a');
    const there = branch === null ? null : await rig.read(branch, pathOf('01-a'));
    const edited = there?.replace('Do it.', 'Do it by hand.') ?? '';
    await rig.commitOn(issueRef(spec, issueId('01-a')), { [pathOf('01-a')]: edited, 'fix.txt': 'x' });
    const intake = await rig.takeIn(specFiles({ '01-a': issueText() }));
    expect(intake).toMatchObject({ edited: [pathOf('01-a')], answered: [pathOf('01-a')] });
    expect((await rig.issue('01-a')).body).toContain('Do it by hand.');
    expect((await rig.issue('01-a')).history).toContain('question: what now?');
  });
});

/** What a run would take in, without taking it. */
async function laterIntakeOf(rig: SpecRig, files: Readonly<Record<string, string>>): Promise<Intake> {
  return laterIntake(rig.git, {
    spec,
    tip: await rig.tip(),
    branches: await readBranches(rig.git, spec),
    folder: `docs/specs/${spec}`,
    checkout: Object.entries(files).map(([path, text]) => ({ path, bytes: Buffer.from(text) })),
    answers: [],
    at,
  });
}
