import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parseIssueFile } from '../../src/config/issue-file.js';
import { historyOf, replaceHistory, spliceFrontmatter, type FrontmatterChanges } from '../../src/config/splice.js';
import { parse } from './folder.js';

function read(text: string) {
  const result = parseIssueFile({ path: 'docs/specs/auth/issues/01-a.md', bytes: Buffer.from(text) });
  if (!result.ok) throw new Error(JSON.stringify(result.failure));
  return result.value;
}

describe('C008 writing state back', () => {
  const file = [
    '\uFEFF---',
    '# who: the platform team',
    'state: ready   # set by hand',
    'touches: ["08", \'010\', 2026-01-02] # unquoted date',
    'resources:   [ a,b ]',
    '---',
    '# Title',
    '',
    'text',
  ].join('\r\n');

  test('only the value changes; comments, quotes, CRLF, byte-order mark and missing last line end stay', () => {
    expect(spliceFrontmatter(file, { state: 'done' })).toBe(file.replace('state: ready   #', 'state: done   #'));
  });

  test('the checkpoint stands below state and vanishes again without a trace', () => {
    const working = spliceFrontmatter(file, { state: 'in-progress', attempt: 2, phase: 'judging' });
    expect(working).toBe(
      file.replace(
        'state: ready   # set by hand',
        'state: in-progress   # set by hand\r\nattempt: 2\r\nphase: judging',
      ),
    );
    expect(read(working).checkpoint).toEqual({ attempt: 2, phase: 'judging' });
    expect(spliceFrontmatter(working, { state: 'ready', attempt: null, phase: null })).toBe(file);
  });

  test('a key that is absent from the changes stays; removing what is not there changes nothing', () => {
    expect(spliceFrontmatter(file, {})).toBe(file);
    expect(spliceFrontmatter(file, { attempt: null, phase: null })).toBe(file);
  });

  test.each([
    ['state: "ready"\n', 'state: done\n'],
    ["state: 'ready' # x\n", 'state: done # x\n'],
    ['"state": ready\n', '"state": done\n'],
    ['state:   ready\n', 'state:   done\n'],
    ['state:\n  ready\n', 'state:\n  done\n'],
    ['state: # todo\n', 'state: done # todo\n'],
    ['state:\n', 'state: done\n'],
    ['state:\ngap: 1\n', 'state: done\ngap: 1\n'],
    ['', 'state: done\n'],
    ['# c\n', '# c\nstate: done\n'],
    ['gap: 1\n\n# c\n', 'gap: 1\n\n# c\nstate: done\n'],
    ['  gap: 1\n', '  gap: 1\n  state: done\n'],
    ['attempt: 1\ngap: 1\n', 'attempt: 1\nstate: done\ngap: 1\n'],
    ['gap: 1\nstate: ready', undefined],
  ])('frontmatter %j becomes %j', (before, after) => {
    const text = `---\n${before}---\n# A\n`;
    if (after === undefined) expect(() => spliceFrontmatter(text, { state: 'done' })).toThrow('cannot edit');
    else expect(spliceFrontmatter(text, { state: 'done' })).toBe(`---\n${after}---\n# A\n`);
  });

  test.each([
    ['attempt: 1\nstate: ready\n', 'state: ready\n'],
    ['state: ready\nattempt:\n  1\n# c\n', 'state: ready\n# c\n'],
    ['state: ready\nattempt: # none\n', 'state: ready\n'],
    ['  state: ready\n  attempt: 1\n  gap: 1\n', '  state: ready\n  gap: 1\n'],
  ])('removing attempt from %j gives %j', (before, after) => {
    expect(spliceFrontmatter(`---\n${before}---\ntext`, { attempt: null })).toBe(`---\n${after}---\ntext`);
  });

  test('frontmatter is made when there is none; the body stays byte for byte', () => {
    expect(spliceFrontmatter('# A\n', { state: 'active' })).toBe('---\nstate: active\n---\n# A\n');
    expect(spliceFrontmatter('\uFEFF# A\r\nx', { state: 'active' })).toBe(
      '\uFEFF---\r\nstate: active\r\n---\r\n# A\r\nx',
    );
    expect(spliceFrontmatter('', { state: 'active' })).toBe('---\nstate: active\n---\n');
    expect(spliceFrontmatter('# A\n', { attempt: null })).toBe('# A\n');
    expect(parse({ 'SPEC.md': spliceFrontmatter('# A\n', { state: 'active' }) }).spec).toMatchObject({
      state: 'active',
      body: '# A\n',
    });
  });

  test('a file without a line end behind its closing fence is edited', () => {
    expect(spliceFrontmatter('---\nstate: draft\n---', { state: 'active' })).toBe('---\nstate: active\n---');
    expect(replaceHistory('---\nstate: draft\n---', '## History\n')).toBe('---\nstate: draft\n---\n\n## History\n');
  });
});

describe('History', () => {
  const head = '---\nstate: ready\n---\n';
  const history = '## History\n\n### Attempt 1\nbase 1a2b3c4\n';

  test('it is appended behind one blank line, and replaced in place', () => {
    expect(replaceHistory(`${head}# A\n`, history)).toBe(`${head}# A\n\n${history}`);
    expect(replaceHistory(`${head}# A`, history)).toBe(`${head}# A\n\n${history}`);
    expect(replaceHistory(`${head}# A\n\n`, history)).toBe(`${head}# A\n\n${history}`);
    expect(replaceHistory(`${head}# A\n\n${history}`, '## History\n\nnew')).toBe(`${head}# A\n\n## History\n\nnew\n`);
    expect(replaceHistory(`${head}# A\n\n${history}`, '')).toBe(`${head}# A\n\n`);
    expect(replaceHistory(`${head}# A\n`, '')).toBe(`${head}# A\n`);
  });

  test('it uses the line ends of the file and is read with line feeds', () => {
    const text = `${head}# A\n`.replaceAll('\n', '\r\n');
    const written = replaceHistory(text, history);
    expect(written).toBe(`${head}# A\n\n${history}`.replaceAll('\n', '\r\n'));
    expect(historyOf(written)).toBe(history);
    expect(read(written.replace('# A', '# A\r\ntext')).history).toBe(history);
  });

  test('text inside it cannot pass for its heading or for a code fence', () => {
    const forged = '## History\n\n```\n## History\n  ~~~\nplain\n';
    const written = replaceHistory(`${head}# A\n\n\`\`\`\nforgotten fence\n`, forged);
    expect(historyOf(written)).toBe('## History\n\n    ```\n    ## History\n    ~~~\nplain\n');
    expect(replaceHistory(written, '')).toBe(`${head}# A\n\n\`\`\`\nforgotten fence\n\n`);
  });

  test('a heading in a code block of the body is not it', () => {
    const body = '# A\n\n```md\n## History\n```\n';
    expect(historyOf(head + body)).toBe('');
    expect(historyOf(replaceHistory(head + body, history))).toBe(history);
  });
});

describe('what is written is what is read back, and every other byte stays', () => {
  const lineEnd = fc.constantFrom('\n', '\r\n');
  const comment = fc.constantFrom('', ' # a comment', '   #', '\t# tab');
  const otherLine = fc.constantFrom(
    '# a comment',
    '',
    'touches: ["src/**", \'x\']',
    'resources: [08, "010", 2026-01-02]',
    'max-attempts: 2',
    'gap: 1   # x',
    'tests:\n  - a/**\n  # inside\n  - "b"',
  );
  const value = fc.constantFrom('ready', '"done"', "'in-progress'");
  const stateLine = fc.tuple(value, comment).map(([word, note]) => `state: ${word}${note}`);
  const bodyLine = fc.oneof(
    fc.constantFrom(
      '# Title',
      'text',
      '',
      '---',
      '```',
      '~~~~',
      '```md',
      '## History',
      '## History ',
      '    ## History',
      '- x',
      '\u00fc',
    ),
    fc.string(),
  );
  const body = fc
    .array(bodyLine, { maxLength: 12 })
    .map((lines) => ['# T', '', 'text', ...lines].join('\n').replace(/[<>]{7}|\r/g, ''));
  const issue = fc
    .record({
      bom: fc.constantFrom('', '\uFEFF'),
      before: fc.uniqueArray(otherLine, { maxLength: 3 }),
      state: stateLine,
      checkpoint: fc.constantFrom('', 'attempt: 1\n', 'attempt: 3 # x\nphase: working\n'),
      after: fc.constantFrom('', 'depends-on: []\n', '# end\n'),
      body,
      end: lineEnd,
    })
    .map(({ bom, before, state, checkpoint, after, body: text, end }) => {
      const lines = `---\n${before.map((line) => `${line}\n`).join('')}${state}\n${checkpoint}${after}---\n${text}`;
      return bom + lines.replaceAll('\n', end);
    });
  const changes: fc.Arbitrary<FrontmatterChanges> = fc.record(
    {
      state: fc.constantFrom('ready', 'in-progress', 'done', 'needs-human', 'wontfix'),
      attempt: fc.option(fc.integer({ min: 1, max: 999 })),
      phase: fc.option(fc.constantFrom('working', 'judging', 'integrating')),
    },
    { requiredKeys: [] },
  );
  const withoutEngineKeys = (text: string) =>
    text
      .split('\n')
      .filter((line) => !/^(?:attempt|phase):/.test(line))
      .map((line) => line.replace(/^(state:\s*)("done"|'in-progress'|[a-z-]+)/, '$1'))
      .join('\n');

  test('frontmatter', () => {
    fc.assert(
      fc.property(issue, changes, (text, change) => {
        const written = spliceFrontmatter(text, change);
        const parsed = read(spliceFrontmatter(written, { state: 'in-progress' }));
        if (change.state !== undefined) expect(read(written).state).toBe(change.state);
        if (typeof change.attempt === 'number' && typeof change.phase === 'string') {
          expect(parsed.checkpoint).toEqual({ attempt: change.attempt, phase: change.phase });
        }
        if (change.attempt === null || change.phase === null) expect(parsed.checkpoint).toBeUndefined();
        expect(withoutEngineKeys(written)).toBe(withoutEngineKeys(text));
        expect(spliceFrontmatter(written, change)).toBe(written);
      }),
      { numRuns: 300 },
    );
  });

  test('any text as state', () => {
    fc.assert(
      fc.property(issue, fc.string({ unit: 'binary' }), (text, state) => {
        const once = spliceFrontmatter(text, { state });
        expect(withoutEngineKeys(spliceFrontmatter(once, { state: 'ready' }))).toBe(withoutEngineKeys(text));
      }),
      { numRuns: 200 },
    );
  });

  test('History', () => {
    const historyLine = fc.oneof(
      fc.constantFrom('### Attempt 1', '- gate test: fail', '', '    ```', '---'),
      fc.string(),
    );
    const history = fc
      .array(historyLine, { minLength: 1, maxLength: 8 })
      .map((lines) => `## History\n\n${lines.join('\n').replace(/[\r`~]/g, '')}\n`)
      .filter((text) => !text.slice(3).includes('\n## History\n'));
    fc.assert(
      fc.property(issue, history, (text, section) => {
        const written = replaceHistory(text, section);
        const [before, after] = [read(text), read(written)];
        expect(historyOf(written)).toBe(section);
        expect(after.history).toBe(section);
        expect(after.body.trimEnd()).toBe(before.body.trimEnd());
        expect(written.startsWith(replaceHistory(text, ''))).toBe(true);
        expect(replaceHistory(written, section)).toBe(written);
        expect({ ...after, body: '', history: '' }).toEqual({ ...before, body: '', history: '' });
      }),
      { numRuns: 300 },
    );
  });
});
