import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parseSpecFolder } from '../../src/config/issue-file.js';
import { plannedIssueText } from '../../src/config/planned-issue.js';
import { historyOf, replaceHistory } from '../../src/config/splice.js';
import { issueNumber, parseIssueId, parseSpecSlug, type IssueId } from '../../src/issue.js';
import type { PlannedText } from '../../src/drivers/planner.js';
import { draftPlan, mostPlanned, type Draft, type PlannedIssue } from '../../src/loop/plan-draft.js';
import { checkGraph } from '../../src/scheduler/graph.js';
import '../rig/seed.js';

const s1 = parseSpecSlug('s1') ?? never();

function never(): never {
  throw new Error('not a name');
}

function idOf(text: string): IssueId {
  return parseIssueId(text) ?? never();
}

function textOf(slug: string, more: Partial<PlannedText> = {}): PlannedText {
  return { slug, title: `Title of ${slug}`, body: `Do ${slug}.`, dependsOn: [], touches: [], resources: [], ...more };
}

function draft(
  texts: readonly PlannedText[],
  ground: { readonly issues?: readonly string[]; readonly taken?: readonly number[]; readonly gap?: number } = {},
): Draft {
  return draftPlan(texts, {
    issues: (ground.issues ?? []).map(idOf),
    taken: ground.taken ?? [],
    gap: ground.gap ?? null,
  });
}

function planned(of: Draft): readonly PlannedIssue[] {
  if (of.kind === 'rejected') throw new Error(JSON.stringify(of.findings));
  return of.issues;
}

function messages(of: Draft): readonly string[] {
  return of.kind === 'rejected' ? of.findings.map((finding) => finding.message) : [];
}

/** The files of a plan, read as every later run will read them. */
function readBack(issues: readonly PlannedIssue[], existing: readonly string[] = []) {
  const files = [
    ['SPEC.md', '---\nstate: active\n---\n# A Spec\n\nGoal.\n'],
    ...existing.map((id) => [`issues/${id}.md`, `---\nstate: done\n---\n# ${id}\n\nDone.\n`]),
    ...issues.map((issue) => [`issues/${issue.id}.md`, plannedIssueText(issue)]),
  ].map(([path, text]) => ({ path: `docs/specs/s1/${path ?? ''}`, bytes: Buffer.from(text ?? '') }));
  return parseSpecFolder({ slug: s1, files });
}

describe('ids', () => {
  test('are numbered from 01 in the order of the plan', () => {
    expect(planned(draft([textOf('store'), textOf('api')])).map(({ id }) => id)).toEqual(['01-store', '02-api']);
  });

  test('go on behind the highest number that was ever used', () => {
    const ground = { issues: ['01-a', '07-b'], taken: [3, 11], gap: 2 };
    expect(planned(draft([textOf('c')], ground))).toMatchObject([{ id: '12-c', gap: 2 }]);
  });

  test('are as wide as the highest one needs', () => {
    const ids = planned(draft(Array.from({ length: 120 }, (_, index) => textOf(`n-${String(index)}`)))).map(
      ({ id }) => id,
    );
    expect([ids[0], ids[119]]).toEqual(['001-n-0', '120-n-119']);
  });

  test('a number that the planner wrote in front of a slug is dropped, and still means that Issue', () => {
    const issues = planned(
      draft([textOf('01-store'), textOf('02-api', { dependsOn: ['01-store'] })], { issues: ['01-old'] }),
    );
    expect(issues).toMatchObject([{ id: '02-store' }, { id: '03-api', dependsOn: ['02-store'] }]);
  });
});

describe('dependencies', () => {
  test.each([
    ['the slug of the plan', 'store', '03-store'],
    ['the id that it gets', '03-store', '03-store'],
    ['a number', '3', '03-store'],
    ['an Issue that there is, by id', '02-api', '02-api'],
    ['by number without zeros', '2', '02-api'],
    ['by its slug', 'api', '02-api'],
  ])('are resolved: %s', (_name, typed, id) => {
    const ground = { issues: ['01-db', '02-api'] };
    const issues = planned(draft([textOf('store'), textOf('page', { dependsOn: [typed, typed] })], ground));
    expect(issues[1]?.dependsOn).toEqual([id]);
  });

  test('the plan’s own slug comes before an older Issue of that name', () => {
    const issues = planned(draft([textOf('api'), textOf('page', { dependsOn: ['api'] })], { issues: ['01-api'] }));
    expect(issues[1]?.dependsOn).toEqual(['02-api']);
  });

  test.each(['nowhere', '9', '01-other', '../01-db', '', '01-db '.repeat(2)])('%j is unknown', (typed) => {
    const [message] = messages(draft([textOf('page', { dependsOn: [typed] })], { issues: ['01-db'] }));
    expect(message).toMatch(/^"page" depends on ".*", which does not exist$/);
  });

  test('on itself, in any spelling', () => {
    for (const typed of ['page', '01-page', '1'])
      expect(messages(draft([textOf('page', { dependsOn: [typed] })]))).toEqual(['"page" depends on itself']);
  });
});

describe('a plan is refused as a whole', () => {
  test.each<[string, readonly PlannedText[], RegExp]>([
    ['no Issue', [], /^the plan has no Issue$/],
    [
      'too many',
      Array.from({ length: mostPlanned + 1 }, (_, index) => textOf(`n${String(index)}`)),
      /201 Issues, at most 200/,
    ],
    [
      'two equal slugs',
      [textOf('a'), textOf('b'), textOf('a')],
      /^2 Issues of the plan have the slug "a": "Title of a", "Title of a"$/,
    ],
    ['equal but for the number in front', [textOf('a'), textOf('02-a')], /have the slug "a"/],
    ['an empty body', [textOf('a', { body: ' \n\t' })], /^the Issue "a" has an empty body/],
    ['a body that only repeats the title', [textOf('a', { body: '# Title of a\n' })], /empty body/],
    ['an empty title', [textOf('a', { title: '\n' })], /^the Issue "a" has no title$/],
    ['a slug that is a path', [textOf('../../etc')], /is no slug/],
    ['a slug with blanks', [textOf('log in')], /is no slug/],
    ['an endless body', [textOf('a', { body: 'x'.repeat(70_000) })], /longer than/],
  ])('%s', (_name, texts, message) => {
    expect(messages(draft(texts)).join('\n')).toMatch(message);
  });

  test('with every fault at once', () => {
    const texts = [textOf('a', { body: '' }), textOf('b', { dependsOn: ['x'] }), textOf('b')];
    expect(messages(draft(texts))).toHaveLength(3);
  });
});

describe('the file of a planned Issue', () => {
  test('has only the keys that giro may write', () => {
    const [issue] = planned(
      draft([textOf('login', { touches: ['src/**'], resources: ['db'], dependsOn: ['1'] })], {
        issues: ['01-a'],
        gap: 1,
      }),
    );
    expect(plannedIssueText(issue ?? never())).toBe(`---
state: ready
depends-on: [01-a]
touches: ["src/**"]
resources: ["db"]
gap: 1
---
# Title of login

Do login.
`);
  });

  test.each([
    ['a fence and keys', '---\nstate: done\ngates: []\n---\nText'],
    ['History', 'Text\n## History\n\n### Attempt 1 · now · x\nverdict: pass\n'],
    ['History with other line ends', 'Text\r\n## History\r\n\r\n### Attempt 1 · now · x\r\n'],
    ['History in a code block that is never closed', 'Text\n```\n## History\n### Attempt 9 · now · x'],
    ['a code block that hides what follows', 'Text\n~~~~\nmore'],
    ['another language', '---js\nprocess.exit()\n---\nText'],
    ['a byte-order mark and controls', '\uFEFF\u0000\u001b[2JText \u0085\ud800'],
  ])('a body that holds %s stays a body', (_name, body) => {
    const read = readBack(planned(draft([textOf('a', { body }), textOf('b')])));
    if (!read.ok) throw new Error(JSON.stringify(read.failure));
    const [issue] = read.value.spec.issues;
    expect(issue).toMatchObject({ id: '01-a', state: 'ready', history: '', dependsOn: [], gates: [] });
    expect(issue).not.toHaveProperty('gap');
    expect(issue?.body).toContain('Text');
  });

  test('any texts come back as one ready Issue each, with what was planned and nothing else', () => {
    const anyText = fc.oneof(
      fc.string({ unit: 'binary', maxLength: 60 }),
      fc
        .array(
          fc.constantFrom('---', '## History', '# x', '```', '~~~', 'state: done', '- a', '', 'words', '%YAML', '"'),
          { maxLength: 8 },
        )
        .map((lines) => lines.join('\n')),
    );
    const texts = fc.array(
      fc.record({
        slug: fc.stringMatching(/^[a-z][a-z0-9]{0,6}$/),
        title: anyText,
        body: anyText,
        dependsOn: fc.array(fc.oneof(fc.constantFrom('1', '01-a', '02', 'a', 'b'), anyText), { maxLength: 2 }),
        touches: fc.array(fc.oneof(fc.constantFrom('src/**', '"x"', '[a', "it's", '#', 'null', '007'), anyText), {
          maxLength: 3,
        }),
        resources: fc.array(anyText, { maxLength: 3 }),
      }),
      { minLength: 1, maxLength: 5 },
    );
    fc.assert(
      fc.property(texts, (plan) => {
        const of = draft(plan, { issues: ['01-a'] });
        if (of.kind === 'rejected') return;
        const read = readBack(of.issues, ['01-a']);
        // A path that leaves the repository, conflict marks or a body of headings only: said, never written otherwise.
        if (!read.ok) return;
        const issues = read.value.spec.issues.filter((issue) => issue.id !== '01-a');
        for (const issue of of.issues) {
          const history = '## History\n\n### Attempt 1 · now · x\n';
          expect(historyOf(replaceHistory(plannedIssueText(issue), history))).toBe(history);
        }
        expect(
          issues.map(({ id, dependsOn, touches, resources, state, history }) => ({
            id,
            dependsOn,
            touches,
            resources,
            state,
            history,
          })),
        ).toEqual(
          of.issues.map(({ id, dependsOn, touches, resources }) => ({
            id,
            dependsOn,
            touches,
            resources,
            state: 'ready',
            history: '',
          })),
        );
      }),
    );
  });

  test('any plan that is taken can be scheduled, but for cycles', () => {
    const texts = fc
      .integer({ min: 1, max: 12 })
      .chain((size) => fc.array(fc.array(fc.nat(size + 1), { maxLength: 3 }), { minLength: size, maxLength: size }))
      .map((edges) =>
        edges.map((targets, place) =>
          textOf(`n${String(place)}`, {
            dependsOn: targets.filter((target) => target !== place).map((target) => `n${String(target)}`),
          }),
        ),
      );
    fc.assert(
      fc.property(texts, (plan) => {
        const of = draft(plan, { issues: ['04-old'], taken: [9] });
        const unknown = plan.some((text) => text.dependsOn.some((on) => Number(on.slice(1)) >= plan.length));
        expect(of.kind).toBe(unknown ? 'rejected' : 'plan');
        if (of.kind === 'rejected') return;
        expect(of.issues.map(({ id }) => issueNumber(id))).toEqual(plan.map((_text, place) => place + 10));
        const all = [
          ...of.issues.map((issue) => ({ ...issue, state: 'ready' as const })),
          { id: idOf('04-old'), dependsOn: [], state: 'done' as const },
        ];
        expect(checkGraph(all).filter((problem) => problem.kind !== 'cycle')).toEqual([]);
      }),
    );
  });
});
