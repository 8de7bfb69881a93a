import { expect, test } from 'vitest';
import { readingTree } from '../../src/store/reading.js';
import { codeTree } from '../../src/store/tree.js';
import { withoutRecord } from '../mutations/parts.js';
import { issueId, issueText, makeSpec, pathOf, spec, specFiles, specText } from './rig.js';

test('what a judge reads has no History, no checkpoint and no other Spec, and all else as it is', async () => {
  const files = specFiles({ '01-a': issueText(), '02-b': issueText() }, specText('draft', 'Wanted: all of it.'));
  const rig = await makeSpec({ files, code: { 'a.ts': 'a', 'docs/specs/other/SPEC.md': specText() } });
  const journal = await rig.journal('01-a');
  await journal.recordAttempt('claude');
  const tip = await rig.tip();
  const code = await rig.codeWith(tip, { 'b.ts': 'b' });
  const line = { files: 1, insertions: 1, deletions: 0, duration: '1 s', subjects: [], summary: 'all is well' };
  const commit = await journal.commitWork({ code, line, gated: true, findings: [{ message: 'red before' }] });
  expect(await rig.read(commit, pathOf('01-a'))).toMatch(/phase: judging[^]*## History[^]*all is well[^]*red before/);

  const reading = await readingTree(rig.git, { spec, commit, code, withoutRecord });
  const shown = (await rig.read(reading.tree, pathOf('01-a'))) ?? '';
  expect(shown.trimEnd()).toBe(issueText('in-progress').trimEnd());
  expect(reading.bodyOf(issueId('01-a')).trimEnd()).toBe('# An Issue\n\nDo it.');
  expect(reading.spec).toBe('# A Spec\n\nWanted: all of it.\n');
  expect(await rig.read(reading.tree, 'docs/specs/other/SPEC.md')).toBeNull();
  expect(await codeTree(rig.git, reading.tree)).toBe(code);
});
