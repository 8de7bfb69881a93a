import { expect, test } from 'vitest';
import { workerPrompt } from '../../src/loop/prompt.js';
import { gate, issueOf } from './rig.js';

const parts = {
  issue: issueOf('01-a', { body: '# Title\n\nDo `it` \u001b[1m.\r\n' }),
  spec: { title: 'A Spec', body: '# A Spec\n\nWhat is wanted.\n' },
  attempt: 2,
  budget: 3,
  gates: [gate('test'), gate('lint')],
  findings: '',
  answers: [],
  conflicts: [],
};

test('a worker is told the Issue and the Spec byte for byte, its gates and its budget', () => {
  const prompt = workerPrompt(parts);
  expect(prompt).toContain(`<<<Issue 01-a: Issue 01-a\n${parts.issue.body}\nIssue>>>`);
  expect(prompt).toContain(`<<<Spec A Spec\n${parts.spec.body}\nSpec>>>`);
  expect(prompt).toContain('  - test: npm run test\n  - lint: npm run lint');
  expect(prompt).toContain('attempt 2 of 3');
  expect(prompt).not.toMatch(/findings|conflict/);
});

test('it hears what was found, and which files conflict', () => {
  const prompt = workerPrompt({ ...parts, findings: '### Attempt 1\n- red', conflicts: ['a.ts', 'b.ts'] });
  expect(prompt).toContain('<<<findings\n### Attempt 1\n- red\nfindings>>>');
  expect(prompt).toContain('  - a.ts\n  - b.ts');
});

test('what a person answered stands apart from what tools found, and goes before it', () => {
  const prompt = workerPrompt({ ...parts, findings: 'red', answers: ['Use the session store.', 'No,\nthe cookie.'] });
  expect(prompt).toMatch(/A person was asked about this Issue, and answered[^]*follow the answer/);
  expect(prompt).toContain('<<<answer\nUse the session store.\nanswer>>>\n<<<answer\nNo,\nthe cookie.\nanswer>>>');
  expect(prompt.indexOf('the cookie')).toBeLessThan(prompt.indexOf('<<<findings'));
});

test('nothing in it reads as an answer that an agent could merely repeat', () => {
  const objects = workerPrompt(parts).match(/\{[^{}]*\}/g) ?? [];
  for (const text of objects) expect(() => JSON.parse(text) as unknown).toThrow();
});
