/** Agents that make their own exam easier, on the built program: each is sent back with what it did. */
import { readFile, writeFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { blocksOf, readText } from '../docs/markdown.js';
import { eventsOf, makeProject, unchangedBy, type Project } from '../rig/giro.js';

const body =
  "import assert from 'node:assert';\nimport test from 'node:test';\n\ntest('adds', () => {\n  assert.equal(1 + 1, 2);\n});\n";
const manifest = JSON.stringify(
  { name: 'x', type: 'module', scripts: { test: 'node --test', build: 'true' } },
  null,
  2,
);
// Put together here, so that no scanner takes this file for one that holds a key.
const key = ['AKIA', 'Q7ZJ5MNB', 'RT2XW4KD'].join('');

async function project(agent: string, frontmatter = ''): Promise<Project> {
  return makeProject({
    files: {
      'README.md': '# T\n',
      'package.json': manifest,
      'test/add.test.js': body,
      'test/other.test.js': body,
      'src/old.js': 'export const old = 1;\n',
    },
    issues: { '01-a': frontmatter === '' ? {} : { frontmatter } },
    budget: 'attempts = 1',
    agent: `echo work > work.txt\n${agent}\n`,
    verify: 'test = "npm test"',
  });
}

test.each([
  [
    'empties a test',
    "printf \"import test from 'node:test';\\ntest('adds', () => {});\\n\" > test/add.test.js",
    'shrink',
    'test/add.test.js',
  ],
  ['skips a test', "sed -i 's/^test(/test.skip(/' test/add.test.js", 'shrink', 'test/add.test.js'],
  ['removes a test', 'rm test/add.test.js', 'shrink', 'test/add.test.js'],
  ['calls nothing its tests', "sed -i 's/node --test/true/' package.json", 'gate-file', 'package.json'],
  ['edits giro.toml', 'echo "# more" > giro.toml', 'protected', 'giro.toml'],
  ['commits a key', `echo "key = '${key}'" > src/key.js`, 'secret', 'src/key.js'],
  ['deletes a file', 'rm src/old.js', 'deleted', 'src/old.js'],
  ['makes a link', 'ln -s src/old.js link.js', 'symlink', 'link.js'],
  ['makes a file executable', 'chmod +x src/old.js', 'mode', 'src/old.js'],
  ['adds a binary', "printf 'a\\0b' > a.bin", 'binary', 'a.bin'],
])('an agent that %s is sent back, though its gates are green', async (_, agent, rule, file) => {
  const made = await project(agent);
  const run = await unchangedBy(made, () => made.implement());
  expect(run.code).toBe(2);
  expect(eventsOf(run, 'gate.finished').every((event) => event.verdict === 'pass')).toBe(true);
  const [judged] = eventsOf(run, 'attempt.judged');
  expect(judged?.verdict).toBe('fail');
  expect(judged?.findings.map((finding) => `${finding.rule ?? '?'} ${finding.file ?? ''}`)).toEqual([
    `${rule} ${file}`,
  ]);
  expect(eventsOf(run, 'issue.integrated')).toEqual([]);
  const told = await made.issueFile('01-a');
  expect(told).toContain(`guard ${rule}: `);
  expect(run.stdout + told).not.toContain(key);
});

test('the next attempt hears what a guard found, and may put it right', async () => {
  const made = await makeProject({
    files: { 'package.json': manifest, 'test/add.test.js': body, 'test/other.test.js': body },
    issues: { '01-a': {} },
    agent:
      'cat > "$HOME/told.$GIRO_ATTEMPT"\necho work > work.txt\nif [ "$GIRO_ATTEMPT" = 1 ]; then cp test/add.test.js "$HOME"; sed -i "s/^test(/test.only(/" test/add.test.js; else cp "$HOME/add.test.js" test; fi\n',
    verify: 'test = "npm test"',
  });
  const run = await made.implement();
  expect(run.code).toBe(0);
  expect(eventsOf(run, 'attempt.judged').map((event) => event.verdict)).toEqual(['fail', 'pass']);
  expect(await made.show('giro/s1', 'test/add.test.js')).toBe(body.trim());
});

test('what the Issue names is allowed', async () => {
  const made = await project('rm src/old.js test/add.test.js', 'touches: [src/old.js]\ntests: ["test/**"]');
  expect((await made.implement()).code).toBe(0);
});

test('a person’s commits on the branch are guarded like an agent’s', async () => {
  const made = await project('rm src/old.js');
  expect((await made.implement()).code).toBe(2);
  const folder = `${made.folder}/by-hand`;
  await made.git('worktree', 'add', '-q', folder, 'giro-issue/s1/01-a');
  await writeFile(`${folder}/src.js`, 'mine\n');
  await made.git('-C', folder, 'checkout', '-q', 'main', '--', 'src/old.js');
  await made.git('-C', folder, 'rm', '-q', 'test/add.test.js');
  await made.git('-C', folder, 'add', '-A');
  await made.git('-C', folder, 'commit', '-qm', 'by hand');
  await made.git('-C', folder, 'switch', '-q', '--detach');
  const again = await made.implement();
  const [judged] = eventsOf(again, 'attempt.judged');
  expect(judged?.findings.map(({ rule, file }) => `${rule ?? '?'} ${file ?? ''}`)).toEqual(['shrink test/add.test.js']);
});

test('a limit that a setting would lift beyond the ceiling is said before anything is spent', async () => {
  const made = await makeProject({ issues: { '01-a': {} } });
  const toml = await readFile(`${made.path}/giro.toml`, 'utf8');
  await made.write('giro.toml', toml.replace('[limits]', '[limits]\nfiles = 5000'));
  const run = await unchangedBy(made, () => made.implement());
  expect(run.code).toBe(1);
  expect(run.stderr).toContain('`files` must be a whole number between 1 and 1000');
});

test('the example of docs/guards.md does what the text says', async () => {
  const blocks = blocksOf(readText('docs/guards.md'));
  const block = (language: string): string => blocks.find((one) => one.language === language)?.text ?? '';
  const made = await makeProject({
    spec: 'demo',
    files: { 'package.json': block('json'), 'add.test.js': block('js') },
    issues: { '01-work': {} },
  });
  await made.write('giro.toml', block('toml'));
  const run = await made.implement();
  expect(run.code).toBe(0);
  const judged = eventsOf(run, 'attempt.judged');
  expect(judged.map((event) => event.verdict)).toEqual(['fail', 'pass']);
  expect(eventsOf(run, 'gate.finished').every((event) => event.verdict === 'pass')).toBe(true);
  const shown = block('text')
    .replace(/\s+/g, ' ')
    .replace(/ or \.\.\.\)\s*$/, '');
  expect(judged[0]?.findings[0]?.message).toContain(shown);
});
