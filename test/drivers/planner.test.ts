import { describe, expect, test } from 'vitest';
import { plannerContract } from '../../src/drivers/planner.js';

const issue = { slug: 'a', title: 'A', body: 'Do a.' };

describe('the envelope of a planner', () => {
  test('holds Issues, with or without what they need', () => {
    const wishes = { 'depends-on': ['b', 2], touches: 'src/**', resources: null };
    expect(plannerContract.parse({ issues: [issue, { ...issue, ...wishes }] })).toEqual({
      ok: true,
      value: {
        kind: 'issues',
        issues: [
          { ...issue, dependsOn: [], touches: [], resources: [] },
          { ...issue, dependsOn: ['b', '2'], touches: ['src/**'], resources: [] },
        ],
      },
    });
  });

  test('holds questions', () => {
    const read = plannerContract.parse({ questions: ['Which?', ' '], issues: [] });
    expect(read).toEqual({ ok: true, value: { kind: 'questions', questions: ['Which?'] } });
  });

  test('without any Issue is a plan that is refused later, with a reason', () => {
    expect(plannerContract.parse({ issues: [] })).toEqual({ ok: true, value: { kind: 'issues', issues: [] } });
  });

  test.each([
    [{ questions: [] }, 'neither issues nor questions'],
    [{ issues: [issue], questions: ['Which?'] }, 'both issues and questions'],
    [{ issues: 'two' }, 'issues'],
    [{ issues: [{ slug: 'a', title: 'A' }] }, 'issues.0.body'],
    [{ issues: [{ ...issue, 'depends-on': [{}] }] }, 'issues.0.depends-on'],
    [
      { issues: [{ ...issue, dependsOn: ['b'] }] },
      'issues.0: unknown key dependsOn; allowed: slug, title, body, depends-on',
    ],
    [{ questions: 'Which?' }, 'questions'],
  ])('%j is none', (value, message) => {
    const read = plannerContract.parse(value);
    expect(read.ok ? '' : read.failure).toContain(message);
  });

  test('says something: exit 0 alone is no plan', () => {
    expect(plannerContract.absent).toBeNull();
  });
});
