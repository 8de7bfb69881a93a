import { describe, expect, test } from 'vitest';
import { findingId, type Finding, type Oid } from '../../src/issue.js';
import { escalationCommit, landedCommit } from '../../src/store/integration.js';
import { BranchMovedError } from '../../src/store/issue-branch.js';
import type { Journal } from '../../src/store/journal.js';
import { integrationRef, issueRef } from '../../src/store/refs.js';
import { codeTree, specsTree } from '../../src/store/tree.js';
import { checkpointOf } from '../../src/store/trailers.js';
import { filesAt, issueId, issueText, makeSpec, pathOf, spec, specFiles, type SpecRig } from './rig.js';

const line = { files: 1, insertions: 1, deletions: 0, duration: '1 s', subjects: [] };
const ref = issueRef(spec, issueId('01-a'));

async function makeIssue(setup: { readonly code?: Readonly<Record<string, string>> } = {}): Promise<SpecRig> {
  return makeSpec({ files: specFiles({ '01-a': issueText(), '02-b': issueText() }), ...setup });
}

/** Commits work in the newest attempt. */
async function work(rig: SpecRig, journal: Journal, files: Readonly<Record<string, string | null>>): Promise<Oid> {
  const { commit } = journal;
  if (commit === null) throw new Error('no attempt');
  const code = await rig.codeWith(commit, files);
  return journal.commitWork({ code, line, gated: true, findings: [] });
}

/** Attempts, works and is judged green. */
async function green(rig: SpecRig, journal: Journal, files: Readonly<Record<string, string | null>>): Promise<Oid> {
  await journal.recordAttempt('claude');
  await work(rig, journal, files);
  const { code } = await journal.trees();
  await journal.recordVerdict({ verdict: 'pass', code, gates: [], findings: [] });
  return code;
}

async function publish(rig: SpecRig, journal: Journal): Promise<void> {
  const tip = await rig.tip();
  const commit = await escalationCommit(rig.facts, { tip, journal, saved: null });
  expect((await rig.git.moveRef(integrationRef(spec), commit, tip)).ok).toBe(true);
}

async function escalate(journal: Journal): Promise<void> {
  await journal.recordVerdict({ verdict: 'fail', gates: [], findings: [{ message: 'red' }] });
  await journal.escalate({ cause: 'budget-spent', packet: ['question: what now?'] });
}

function nowhere(): never {
  throw new Error('no commit');
}

/** What every commit of an Issue's branch must be (J2, J4). */
async function checkBranch(rig: SpecRig, journal: Journal, states: readonly string[]): Promise<void> {
  const { git } = rig;
  const seen: string[] = [];
  for (let next = await rig.branch('01-a'); next !== null;) {
    const commit = await git.readCommit(next);
    if (commit.parents[0] === undefined || checkpointOf(commit.message) === 'snapshot') break;
    const own = await filesAt(rig, next);
    const text = own[pathOf('01-a')] ?? '';
    seen.push(
      /^state: (\S+)(?:\nattempt: (\d+)\nphase: (\S+))?$/m.exec(text)?.slice(1).filter(Boolean).join(' ') ?? '',
    );
    // Everything else under docs/specs is that of some commit of the integration branch.
    const others = { ...own, [pathOf('01-a')]: '' };
    const tips = (await rig.repository.git('rev-list', '--first-parent', `giro/${spec}`)).split('\n') as Oid[];
    const known = await Promise.all(tips.map(async (tip) => ({ ...(await filesAt(rig, tip)), [pathOf('01-a')]: '' })));
    expect(known).toContainEqual(others);
    next = commit.parents[0];
  }
  expect(seen.reverse()).toEqual(states);
  expect(journal.commit).toBe(await rig.branch('01-a'));
}

describe('a checkpoint', () => {
  test('is one commit on the value before, with the code as it is and only the own file changed', async () => {
    const rig = await makeIssue();
    const journal = await rig.journal('01-a');
    expect(journal.standing).toBe('fresh');
    const first = await journal.recordAttempt('claude');
    expect(first).toMatchObject({ attempt: 1, base: await rig.tip(), commit: await rig.branch('01-a') });
    expect((await rig.git.readCommit(first.commit)).parents).toEqual([await rig.tip()]);
    expect(first.files).toBe((await rig.git.readCommit(first.commit)).tree);
    await work(rig, journal, { 'a.txt': 'a' });
    await journal.recordVerdict({ verdict: 'fail', code: (await journal.trees()).code, gates: [], findings: [] });
    await journal.recordAttempt('claude');
    await journal.recordVerdict({ verdict: 'stopped', gates: [], findings: [] });
    await green(rig, journal, { 'b.txt': 'b' });
    await journal.recordRejection({ tip: await rig.tip(), gates: [], findings: [{ message: 'red there' }] });
    await journal.escalate({ cause: 'no-progress', packet: ['question: what now?'] });
    await checkBranch(rig, journal, [
      'in-progress 1 working',
      'in-progress 1 judging',
      'in-progress 1 working',
      'in-progress 2 working',
      'in-progress 2 working',
      'in-progress 3 working',
      'in-progress 3 judging',
      'in-progress 3 integrating',
      'in-progress 3 working',
      'needs-human',
    ]);
    const commit = await rig.branch('01-a');
    if (commit === null) throw new Error('no branch');
    expect(await rig.read(commit, 'a.txt')).toBe('a');
    expect(await rig.read(commit, 'b.txt')).toBe('b');
  });

  test('what an agent did under docs/specs is not in it', async () => {
    const rig = await makeIssue();
    const journal = await rig.journal('01-a');
    const { commit } = await journal.recordAttempt('claude');
    const withSpecs = {
      'a.txt': 'a',
      [pathOf('01-a')]: 'mine',
      [pathOf('02-b')]: 'mine',
      'docs/specs/other/SPEC.md': 'mine',
    };
    const tree = await rig.codeWith(commit, withSpecs);
    const code = await codeTree(rig.git, tree);
    const done = await journal.commitWork({ code, line, gated: true, findings: [] });
    const before = await filesAt(rig, await rig.tip());
    expect({ ...(await filesAt(rig, done)), [pathOf('01-a')]: '' }).toEqual({ ...before, [pathOf('01-a')]: '' });
    expect(await rig.read(done, 'docs/specs/other/SPEC.md')).toBeNull();
  });

  test('user-owned parts come from the integration branch, also after an import, and History stays', async () => {
    const rig = await makeIssue();
    const journal = await rig.journal('01-a');
    await journal.recordAttempt('claude');
    await rig.takeIn(
      specFiles({
        '01-a': issueText('ready', 'touches: ["src/**"]\n', 'Otherwise.'),
        '02-b': issueText('ready', '', 'Changed.'),
      }),
    );
    const next = await rig.journal('01-a');
    expect(next.issue).toMatchObject({ touches: ['src/**'] });
    await next.recordVerdict({ verdict: 'fail', gates: [], findings: [] });
    await next.bringOnto(await rig.tip());
    const { commit } = await next.recordAttempt('claude');
    const text = (await rig.read(commit, pathOf('01-a'))) ?? '';
    expect(text).toMatch(
      /^---\nstate: in-progress\nattempt: 2\nphase: working\ntouches: \["src\/\*\*"\]\n---\n# An Issue\n\nOtherwise\.\n\n## History\n/,
    );
    expect(text).toContain('### Attempt 1');
    expect(await rig.read(commit, pathOf('02-b'))).toContain('Changed.');
  });

  test('of a record that is open follows what is taken in meanwhile, once it is on that tip', async () => {
    const rig = await makeIssue();
    const journal = await rig.journal('01-a');
    await journal.recordAttempt('claude');
    await journal.recordVerdict({ verdict: 'fail', gates: [], findings: [] });
    await rig.takeIn(specFiles({ '01-a': issueText('ready', '', 'Otherwise.'), '02-b': issueText() }));
    await journal.bringOnto(await rig.tip());
    const { commit } = await journal.recordAttempt('claude');
    expect(await rig.read(commit, pathOf('01-a'))).toMatch(/Otherwise\.[\s\S]*### Attempt 2/);
  });

  test('keeps the line ends of the file', async () => {
    const rig = await makeSpec({ files: specFiles({ '01-a': issueText().replaceAll('\n', '\r\n') }) });
    const journal = await rig.journal('01-a');
    await green(rig, journal, { 'a.txt': 'a' });
    const again = await rig.journal('01-a');
    expect(again).toMatchObject({ standing: 'integrating', attempt: 1, budgetUsed: 1 });
    const text = again.commit === null ? '' : ((await rig.read(again.commit, pathOf('01-a'))) ?? '');
    expect(text.replaceAll('\r\n', '')).not.toContain('\n');
  });

  test('of a History that another life of the Issue left, numbers go on', async () => {
    const history = '\n## History\n\n### Attempt 7 · 2029-01-01T00:00:00Z · claude\nbase aaaaaaa\nverdict: fail\n';
    const rig = await makeSpec({ files: specFiles({ '01-a': `${issueText()}${history}` }) });
    expect(await (await rig.journal('01-a')).recordAttempt('claude')).toMatchObject({ attempt: 8 });
  });
});

describe('a branch that is brought onto the tip', () => {
  test('has both parents on the attempt when it is clean', async () => {
    const rig = await makeIssue();
    const journal = await rig.journal('01-a');
    await green(rig, journal, { 'a.txt': 'a' });
    const before = await rig.branch('01-a');
    const tip = await rig.land({ 'b.txt': 'b' });
    await journal.bringOnto(tip);
    expect(journal).toMatchObject({ conflicts: [], commit: before });
    const { code, baseCode } = await journal.trees();
    const { commit, base, files } = await journal.recordAttempt('claude');
    expect((await rig.git.readCommit(commit)).parents).toEqual([before, tip]);
    expect([base, journal.base]).toEqual([tip, tip]);
    for (const path of ['a.txt', 'b.txt']) expect(await rig.read(files, path)).toBe(path[0]);
    expect(baseCode).toBe(await codeTree(rig.git, (await rig.git.readCommit(tip)).tree));
    expect(await rig.git.readPath(code, 'b.txt')).toBeNull();
    expect((await journal.trees()).code).toBe((await journal.trees()).shown);
  });

  test('has both parents on the work when it conflicts, and shows both sides to the worker', async () => {
    const rig = await makeIssue({ code: { 'line.txt': 'base\n' } });
    const journal = await rig.journal('01-a');
    await green(rig, journal, { 'line.txt': 'mine\n' });
    const before = await rig.branch('01-a');
    const tip = await rig.land({ 'line.txt': 'theirs\n' });
    await journal.bringOnto(tip);
    expect(journal.conflicts).toEqual(['line.txt']);
    const recorded = await journal.recordAttempt('claude');
    expect((await rig.git.readCommit(recorded.commit)).parents).toEqual([before]);
    expect(await rig.read(recorded.commit, 'line.txt')).toBe('mine\n');
    expect(await rig.read(recorded.files, 'line.txt')).toMatch(/<<<<<<< .*\nmine\n=======\ntheirs\n>>>>>>> /s);
    const { shown } = await journal.trees();
    expect(await codeTree(rig.git, recorded.files)).toBe(shown);
    const done = await work(rig, journal, { 'line.txt': 'both\n' });
    expect((await rig.git.readCommit(done)).parents).toEqual([recorded.commit, tip]);
    expect(journal).toMatchObject({ base: tip, conflicts: [] });
  });

  test('a conflict that is settled by the own version drops what landed: it is named, and shown again', async () => {
    const rig = await makeIssue({ code: { 'line.txt': 'base\n', 'all.txt': 'base\n' } });
    const journal = await rig.journal('01-a');
    await green(rig, journal, { 'line.txt': 'mine\n', 'all.txt': 'mine\ntheirs\n' });
    const tip = await rig.land({ 'line.txt': 'theirs\n', 'all.txt': 'theirs\n' });
    await journal.bringOnto(tip);
    const recorded = await journal.recordAttempt('claude');
    const of = (files: Record<string, string>) => rig.codeWith(recorded.commit, files);
    expect(await journal.overruled(await of({ 'line.txt': 'mine\ntheirs\n' }))).toEqual([]);
    expect(await journal.overruled(await of({ 'line.txt': 'theirs\n' }))).toEqual([]);
    const code = await of({ 'line.txt': 'mine\n' });
    expect(await journal.overruled(code)).toEqual(['line.txt']);
    const done = await journal.commitWork({ code, line, gated: true, findings: [], overrules: true });
    expect((await rig.git.readCommit(done)).parents).toEqual([recorded.commit]);
    await journal.bringOnto(tip);
    expect(journal.conflicts).toEqual(['all.txt', 'line.txt']);
  });

  test('an attempt that left a conflict as it was shown sees it again', async () => {
    const rig = await makeIssue({ code: { 'line.txt': 'base\n' } });
    const journal = await rig.journal('01-a');
    await green(rig, journal, { 'line.txt': 'mine\n' });
    await journal.bringOnto(await rig.land({ 'line.txt': 'theirs\n' }));
    const first = await journal.recordAttempt('claude');
    await journal.recordVerdict({ verdict: 'operation', gates: [], findings: [] });
    expect(journal.conflicts).toEqual(['line.txt']);
    const second = await journal.recordAttempt('claude');
    expect(await codeTree(rig.git, second.files)).toBe(await codeTree(rig.git, first.files));
    // So does the next run.
    const again = await rig.journal('01-a');
    await again.bringOnto(await rig.tip());
    expect(again).toMatchObject({ standing: 'interrupted', conflicts: ['line.txt'] });
  });

  test('before its first attempt it simply starts there', async () => {
    const rig = await makeIssue();
    const journal = await rig.journal('01-a');
    const tip = await rig.land({ 'b.txt': 'b' });
    await journal.bringOnto(tip);
    const { commit, base } = await journal.recordAttempt('claude');
    expect(base).toBe(tip);
    expect((await rig.git.readCommit(commit)).parents).toEqual([tip]);
  });

  test('the integration branch never shows a checkpoint', async () => {
    const rig = await makeIssue();
    const journal = await rig.journal('01-a');
    const code = await green(rig, journal, { 'a.txt': 'a' });
    await rig.commitOn(integrationRef(spec), { [pathOf('01-a')]: issueText('ready', 'attempt: 3\nphase: working\n') });
    const tip = await rig.tip();
    const landed = await landedCommit(rig.facts, { tip, code, journal, gates: [] });
    expect(await rig.read(landed, pathOf('01-a'))).toMatch(/^---\nstate: done\n---\n/);
  });

  test('a landing after it has the code, the story and the branch as second parent', async () => {
    const rig = await makeIssue();
    const journal = await rig.journal('01-a');
    const code = await green(rig, journal, { 'a.txt': 'a' });
    const tip = await rig.tip();
    const landed = await landedCommit(rig.facts, {
      tip,
      code,
      journal,
      gates: [{ gate: 'test', verdict: 'pass', note: 'exit 0', findings: [] }],
    });
    const { parents, message, tree } = await rig.git.readCommit(landed);
    expect(parents).toEqual([tip, journal.commit]);
    expect(message).toMatch(/^01-a: An Issue\n/);
    expect(await codeTree(rig.git, tree)).toBe(code);
    const before = await filesAt(rig, tip);
    const after = await filesAt(rig, landed);
    expect({ ...after, [pathOf('01-a')]: '' }).toEqual({ ...before, [pathOf('01-a')]: '' });
    expect(after[pathOf('01-a')]).toMatch(
      /^---\nstate: done\n---\n[\s\S]*### Integrated · [\s\S]*- gate test: pass · exit 0\nverdict: pass\n$/,
    );
  });
});

describe('a branch that somebody else moved', () => {
  async function moved(
    change: 'commit' | 'delete',
  ): Promise<{ readonly rig: SpecRig; readonly journal: Journal; readonly theirs: Oid | null }> {
    const rig = await makeIssue();
    const journal = await rig.journal('01-a');
    await journal.recordAttempt('claude');
    if (change === 'commit') return { rig, journal, theirs: await rig.commitOn(ref, { 'theirs.txt': 'x' }) };
    await rig.repository.git('update-ref', '-d', ref);
    return { rig, journal, theirs: null };
  }

  test.each(['commit', 'delete'] as const)(
    'is not written any more (%s), and what was recorded is kept',
    async (change) => {
      const { rig, journal, theirs } = await moved(change);
      await expect(work(rig, journal, { 'a.txt': 'a' })).rejects.toThrow(BranchMovedError);
      expect(await rig.branch('01-a')).toBe(theirs);
      expect(journal.lost).toContain(theirs === null ? 'was deleted' : theirs.slice(0, 7));
      // Escalating needs no branch: the story goes to the integration branch, with a place for the work.
      await journal.escalate({ cause: 'operation-failures', packet: ['question: what happened?'] });
      expect(await rig.branch('01-a')).toBe(theirs);
      const kept = journal.commit;
      if (kept === null) throw new Error('nothing is kept');
      expect(await rig.read(kept, 'a.txt')).toBe('a');
      const escalated = await escalationCommit(rig.facts, {
        tip: await rig.tip(),
        journal,
        saved: 'refs/giro/salvage/x',
      });
      const text = (await rig.read(escalated, pathOf('01-a'))) ?? '';
      expect(text).toMatch(
        /^---\nstate: needs-human\n---\n[\s\S]*question: what happened\?\nsaved: refs\/giro\/salvage\/x\n$/,
      );
    },
  );

  test('before an attempt: nothing is started, since nothing is recorded (J1)', async () => {
    const rig = await makeIssue();
    const journal = await rig.journal('01-a');
    const theirs = await rig.commitOn(ref, { 'theirs.txt': 'x' });
    await expect(journal.recordAttempt('claude')).rejects.toThrow(BranchMovedError);
    expect(await rig.branch('01-a')).toBe(theirs);
  });
});

describe('the next run finds an Issue', () => {
  test('fresh', async () => {
    const rig = await makeIssue();
    expect(await rig.journal('01-a')).toMatchObject({ standing: 'fresh', commit: null, attempt: 0 });
  });

  test('interrupted, when its attempt was recorded and never finished', async () => {
    const rig = await makeIssue();
    await (await rig.journal('01-a')).recordAttempt('claude');
    expect(await rig.journal('01-a')).toMatchObject({ standing: 'interrupted', attempt: 1, budgetUsed: 1 });
  });

  test('interrupted, when work was committed that no gate should judge', async () => {
    const rig = await makeIssue();
    const journal = await rig.journal('01-a');
    const { commit } = await journal.recordAttempt('claude');
    await journal.commitWork({ code: await rig.codeWith(commit, { a: 'a' }), line, gated: false, findings: [] });
    expect(await rig.journal('01-a')).toMatchObject({ standing: 'interrupted' });
  });

  test('judging, with what the engine found on the work', async () => {
    const rig = await makeIssue();
    const journal = await rig.journal('01-a');
    const { commit } = await journal.recordAttempt('claude');
    const findings: [Finding, Finding] = [
      { message: 'conflict marks are left in the file', file: 'a.txt', line: 3, detail: 'x\ny' },
      { message: 'two' },
    ];
    await journal.commitWork({ code: await rig.codeWith(commit, { a: 'a' }), line, gated: true, findings });
    const again = await rig.journal('01-a');
    expect(again.standing).toBe('judging');
    // Their names are the same, although their parts are one text now.
    expect(again.workFindings).toEqual([
      { message: 'a.txt:3: conflict marks are left in the file', id: findingId(findings[0]) },
      { message: 'two', id: findingId(findings[1]) },
    ]);
    await again.recordVerdict({ verdict: 'fail', gates: [], findings: [] });
    expect(again.workFindings).toEqual([]);
  });

  test.each(['fail', 'stopped', 'operation'] as const)('between, after %s', async (verdict) => {
    const rig = await makeIssue();
    const journal = await rig.journal('01-a');
    await journal.recordAttempt('claude');
    await journal.recordVerdict({ verdict, gates: [], findings: [] });
    expect(await rig.journal('01-a')).toMatchObject({
      standing: 'between',
      attempt: 1,
      budgetUsed: verdict === 'fail' ? 1 : 0,
    });
  });

  test('integrating, and between once the lane sent it back', async () => {
    const rig = await makeIssue();
    const journal = await rig.journal('01-a');
    await green(rig, journal, { 'a.txt': 'a' });
    expect(await rig.journal('01-a')).toMatchObject({ standing: 'integrating' });
    await journal.recordRejection({ tip: await rig.tip(), gates: [], findings: [{ message: 'red there' }] });
    const again = await rig.journal('01-a');
    expect(again).toMatchObject({ standing: 'between' });
    expect(again.findings).toContain('red there');
  });

  test('needs-human, published or not', async () => {
    const rig = await makeIssue();
    const journal = await rig.journal('01-a');
    await journal.recordAttempt('claude');
    await escalate(journal);
    const unpublished = await rig.journal('01-a');
    expect(unpublished).toMatchObject({ standing: 'needs-human', issue: { state: 'ready' } });
    await publish(rig, journal);
    expect(await rig.journal('01-a')).toMatchObject({
      standing: 'needs-human',
      answered: false,
      issue: { state: 'needs-human' },
    });
  });

  test('between once it is answered, with a whole budget and its code', async () => {
    const rig = await makeIssue();
    const journal = await rig.journal('01-a');
    await journal.recordAttempt('claude');
    await work(rig, journal, { 'a.txt': 'a' });
    await escalate(journal);
    await publish(rig, journal);
    await rig.takeIn(null, { answers: true });
    const again = await rig.journal('01-a');
    expect(again).toMatchObject({
      standing: 'between',
      answered: true,
      budgetUsed: 0,
      attempt: 1,
      commit: journal.commit,
    });
    const { commit, attempt } = await again.recordAttempt('claude');
    expect(attempt).toBe(2);
    expect(await rig.read(commit, 'a.txt')).toBe('a');
    expect(await rig.journal('01-a')).toMatchObject({
      standing: 'interrupted',
      attempt: 2,
      budgetUsed: 1,
      answered: false,
    });
  });

  test('by hand, with a commit of a person on it after it was answered', async () => {
    const rig = await makeIssue();
    const journal = await rig.journal('01-a');
    await journal.recordAttempt('claude');
    await escalate(journal);
    await publish(rig, journal);
    const theirs = await rig.commitOn(ref, { 'fix.txt': 'fix' }, 'fix it');
    expect(await rig.journal('01-a')).toMatchObject({ standing: 'needs-human' });
    await rig.takeIn(null, { answers: true });
    const again = await rig.journal('01-a');
    expect(again).toMatchObject({ standing: 'by-hand', attempt: 1, budgetUsed: 0 });
    await again.adoptWork({ code: null, by: 'by hand', line: { ...line, duration: 'by hand' }, findings: [] });
    const adopted = again.commit;
    if (adopted === null) throw new Error('nothing was adopted');
    expect((await rig.git.readCommit(adopted)).parents).toEqual([theirs]);
    expect(await rig.read(adopted, 'fix.txt')).toBe('fix');
    expect(again).toMatchObject({ standing: 'judging', attempt: 2 });
    expect(await rig.journal('01-a')).toMatchObject({ standing: 'judging', attempt: 2 });
  });

  test('by hand, when a person amended the engine’s own commit; other words alone are nobody’s work', async () => {
    const rig = await makeIssue();
    const journal = await rig.journal('01-a');
    await journal.recordAttempt('claude');
    await work(rig, journal, { 'a.txt': 'a' });
    await escalate(journal);
    await publish(rig, journal);
    await rig.takeIn(null, { answers: true });
    const written = await rig.git.readCommit((await rig.branch('01-a')) ?? nowhere());
    const amend = async (tree: Oid, message: string): Promise<void> => {
      const commit = await rig.git.writeCommit({ tree, parents: written.parents, message, at: rig.clock.now() });
      expect((await rig.git.moveRef(ref, commit, await rig.branch('01-a'))).ok).toBe(true);
    };
    await amend(written.tree, written.message.replace('needs a human', 'asks'));
    expect(await rig.journal('01-a')).toMatchObject({ standing: 'between' });
    const blob = await rig.git.writeBlob('fixed');
    await amend(
      await rig.git.editTree(written.tree, new Map([['a.txt', { mode: '100644', oid: blob }]])),
      written.message,
    );
    const again = await rig.journal('01-a');
    expect(again).toMatchObject({ standing: 'by-hand', attempt: 1, budgetUsed: 0 });
    await again.adoptWork({ code: null, by: 'by hand', line: { ...line, duration: 'by hand' }, findings: [] });
    expect(await rig.read(again.commit ?? nowhere(), 'a.txt')).toBe('fixed');
    expect(await rig.journal('01-a')).toMatchObject({ standing: 'judging', attempt: 2 });
  });

  test('by hand, above an attempt of its own: numbers go on from there', async () => {
    const rig = await makeIssue();
    const journal = await rig.journal('01-a');
    await journal.recordAttempt('claude');
    await escalate(journal);
    await publish(rig, journal);
    await rig.takeIn(null, { answers: true });
    const second = await rig.journal('01-a');
    await second.recordAttempt('claude');
    await second.recordVerdict({ verdict: 'stopped', gates: [], findings: [] });
    await rig.commitOn(ref, { 'fix.txt': 'fix' }, 'fix it');
    expect(await rig.journal('01-a')).toMatchObject({ standing: 'by-hand', attempt: 2 });
  });

  test('by hand, whatever the person did to the Issue file', async () => {
    const rig = await makeIssue();
    const journal = await rig.journal('01-a');
    await journal.recordAttempt('claude');
    await journal.recordVerdict({ verdict: 'fail', gates: [], findings: [] });
    await rig.commitOn(ref, { [pathOf('01-a')]: '---\nstate: [\n', 'fix.txt': 'x' });
    expect(await rig.journal('01-a')).toMatchObject({ standing: 'by-hand', attempt: 1, budgetUsed: 1 });
  });

  test('as before, when a person changed nothing on its branch but files of the Spec', async () => {
    const rig = await makeIssue();
    const journal = await rig.journal('01-a');
    await journal.recordAttempt('claude');
    await journal.recordVerdict({ verdict: 'fail', gates: [], findings: [] });
    await rig.commitOn(ref, { [pathOf('01-a')]: issueText('ready', '', 'Clearer.') });
    expect(await rig.journal('01-a')).toMatchObject({ standing: 'between', attempt: 1 });
  });

  test('with the work that a person left in its folder', async () => {
    const rig = await makeIssue();
    const journal = await rig.journal('01-a');
    await journal.recordAttempt('claude');
    await escalate(journal);
    await publish(rig, journal);
    await rig.takeIn(null, { answers: true });
    const again = await rig.journal('01-a');
    const before = again.commit;
    if (before === null) throw new Error('no branch');
    const code = await rig.codeWith(before, { 'fix.txt': 'fix' });
    await again.adoptWork({ code, by: 'by hand', line, findings: [{ message: 'marks' }] });
    expect((await again.trees()).code).toBe(code);
    expect((await rig.git.readCommit(again.commit ?? before)).parents).toEqual([before]);
    expect((await rig.journal('01-a')).workFindings).toMatchObject([{ message: 'marks' }]);
  });

  test('fresh again when its branch belongs to an earlier life, whose value the next attempt replaces', async () => {
    const rig = await makeIssue();
    const journal = await rig.journal('01-a');
    await green(rig, journal, { 'a.txt': 'a' });
    const again = await rig.journal('01-a', { fresh: true });
    expect(again).toMatchObject({ standing: 'fresh', commit: null, attempt: 0 });
    const { commit } = await again.recordAttempt('claude');
    expect((await rig.git.readCommit(commit)).parents).toEqual([await rig.tip()]);
    expect(await rig.branch('01-a')).toBe(commit);
  });
});

test('the stand-in for the lane differs from its base in code only', async () => {
  const rig = await makeIssue();
  const journal = await rig.journal('01-a');
  const code = await green(rig, journal, { 'a.txt': 'a' });
  const standIn = await journal.standIn();
  expect(standIn).toMatchObject({ base: await rig.tip(), code });
  const { tree, parents } = await rig.git.readCommit(standIn.commit);
  expect(parents).toEqual([standIn.base]);
  expect(await specsTree(rig.git, tree)).toBe(await specsTree(rig.git, (await rig.git.readCommit(standIn.base)).tree));
});
