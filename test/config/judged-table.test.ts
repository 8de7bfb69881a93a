import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { loadPolicy } from '../../src/config/load.js';
import type { Diagnostic } from '../../src/failure.js';
import type { GateDefinition } from '../../src/policy.js';
import { temporaryFolder } from '../rig/temp.js';
import { underlined } from './folder.js';

const base = '[driver]\ndefault = "command"\n[driver.command]\nrun = ["./agent"]\n[verify]\ntest = "npm test"\n';

async function load(
  gate: string,
  files: Readonly<Record<string, string>> = {},
): Promise<ReturnType<typeof loadPolicy>> {
  const { path: repository } = await temporaryFolder();
  for (const [path, text] of Object.entries(files)) {
    await mkdir(dirname(join(repository, path)), { recursive: true });
    await writeFile(join(repository, path), text);
  }
  return loadPolicy({ text: base + gate, file: 'giro.toml', repository, processors: 2, own: {} });
}

async function gateOf(gate: string, files?: Readonly<Record<string, string>>): Promise<GateDefinition | undefined> {
  const policy = await load(gate, files);
  if (!policy.ok) throw new Error(JSON.stringify(policy.failure.diagnostics));
  return policy.value.gates[1];
}

async function mistakeOf(gate: string, files?: Readonly<Record<string, string>>): Promise<Diagnostic> {
  const policy = await load(gate, files);
  const [first, ...others] = policy.ok ? [] : policy.failure.diagnostics;
  if (first === undefined) throw new Error('no mistake was found');
  expect(others).toEqual([]);
  return first;
}

const skill = '---\nname: accept\ndescription: Accepts a Spec.\nlicense: MIT\n---\n# Accept\n\nDo it.\n';

test('a rubric is the text itself, or the file that one line with .md names', async () => {
  const common = { name: 'review', kind: 'prompt', on: ['issue'], timeoutMs: 900_000, env: [], afterGreen: false };
  expect(await gateOf('[verify.review]\nkind = "prompt"\nrubric = "Be strict."')).toEqual({
    ...common,
    rubric: { text: 'Be strict.', source: null },
  });
  const files = { 'docs/r.md': '# Rubric\n\nBe kind.\n' };
  expect(await gateOf('[verify.review]\nkind = "prompt"\nrubric = "docs/r.md"', files)).toEqual({
    ...common,
    rubric: { text: '# Rubric\n\nBe kind.\n', source: 'docs/r.md' },
  });
  const lines = await gateOf('[verify.review]\nkind = "prompt"\nrubric = """\nRead\ndocs/r.md"""\nafter-green = true');
  expect(lines).toMatchObject({ rubric: { text: 'Read\ndocs/r.md', source: null }, afterGreen: true });
});

test('a skill comes whole, with name and description; further keys of its format are let be', async () => {
  expect(
    await gateOf('[verify.accept]\nkind = "skill"\nskill = "skills/a/SKILL.md"\non = ["spec"]', {
      'skills/a/SKILL.md': skill,
    }),
  ).toMatchObject({
    kind: 'skill',
    on: ['spec'],
    skill: { path: 'skills/a/SKILL.md', name: 'accept', description: 'Accepts a Spec.', text: skill },
  });
});

test.each([
  ['no rubric', 'kind = "prompt"', 'verify.g', '`rubric` is missing'],
  [
    'an empty rubric',
    'kind = "prompt"\nrubric = "  "',
    '"  "',
    '`rubric` is empty: the judge would have nothing to judge by',
  ],
  ['a missing file', 'kind = "prompt"\nrubric = "no.md"', '"no.md"', '`rubric` names `no.md`, which does not exist'],
  ['an empty file', 'kind = "prompt"\nrubric = "empty.md"', '"empty.md"', 'the rubric `empty.md` is empty'],
  ['a folder', 'kind = "prompt"\nrubric = "dir.md"', '"dir.md"', '`rubric` names `dir.md`, which is a folder'],
  [
    'a file outside',
    'kind = "prompt"\nrubric = "../r.md"',
    '"../r.md"',
    '`rubric` must be a path inside the repository (it leaves the repository with ..), not `../r.md`',
  ],
  ...['docs/rubrics/review', 'review.txt', 'dir.md/my rubric'].map((path) => [
    `a path that is none of a .md file: ${path}`,
    `kind = "prompt"\nrubric = "${path}"`,
    `"${path}"`,
    `\`${path}\` looks like a path, but is none of a .md file`,
  ]),
  ['no skill', 'kind = "skill"', 'verify.g', '`skill` is missing'],
  [
    'a missing skill',
    'kind = "skill"\nskill = "s/SKILL.md"',
    '"s/SKILL.md"',
    '`skill` names `s/SKILL.md`, which does not exist',
  ],
  ['a folder for a skill', 'kind = "skill"\nskill = "s"', '"s"', '`skill` must be the path of a SKILL.md, not `s`'],
  ['the key of another kind', 'kind = "prompt"\nrubric = "x"\nrun = "true"', 'run', 'unknown key `run` in [verify.g]'],
])('%s is refused, with its place', async (_name, gate, mark, message) => {
  const found = await mistakeOf(`[verify.g]\n${gate}\n`, { 'empty.md': ' \n', 'dir.md/my rubric': '' });
  expect(found.message).toBe(message);
  expect(underlined(found)).toBe(mark);
  expect(found.file).toBe('giro.toml');
});

test.each<[name: string, text: string, message: string, line?: number]>([
  ['no frontmatter', '# Accept\n', 'a skill begins with frontmatter'],
  ['no name', '---\ndescription: x\n---\n', 'the skill has no `name`'],
  ['a name that is none', '---\nname: My Skill\ndescription: x\n---\n', '`My Skill` cannot be the name of a skill', 2],
  [
    'nothing in it',
    '---\nname: a\ndescription: x\n---\n\n',
    'the skill has nothing below its frontmatter: the judge would have nothing to judge by',
  ],
  ['no description', '---\nname: a\n---\n', 'the skill has no `description`'],
  ['an open frontmatter', '---\nname: a\n', 'the frontmatter is never closed'],
])('a SKILL.md with %s is refused in its own file', async (_name, text, message, line = 1) => {
  const found = await mistakeOf('[verify.g]\nkind = "skill"\nskill = "s/SKILL.md"\n', { 's/SKILL.md': text });
  expect([found.file, found.line, found.message]).toEqual(['s/SKILL.md', line, message]);
});
