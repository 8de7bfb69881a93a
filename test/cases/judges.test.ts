import { readFile, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { eventsOf, makeProject, type GiroRun, type Project, type ProjectSetup } from '../rig/giro.js';

/** A judge as a shell script: `$GATE_DIR` is a folder where calls are counted and what it saw is kept. */
function judged(
  judge: string,
  more: { readonly toml?: string; readonly agent?: string; readonly budget?: string } = {},
) {
  return withJudge(judge, {
    issues: { '01-a': {} },
    files: { 'README.md': '# T\n' },
    ...(more.agent === undefined ? {} : { agent: more.agent }),
    budget: more.budget ?? 'attempts = 2',
    verify: 'test = "true"\n[verify.review]\nkind = "prompt"\nrubric = "The file says who wrote it."',
    toml: more.toml ?? '',
  });
}

/** The judge is the person's own program: it is in no commit, and so in no checkout. */
async function withJudge(judge: string, setup: ProjectSetup): Promise<Project> {
  const driver = '[driver.judge]\nkind = "command"\nrun = ["./judge.sh"]\n[roles]\njudge = "judge"\n';
  const project = await makeProject({ ...setup, toml: `${driver}${setup.toml ?? ''}` });
  await project.write('judge.sh', `#!/bin/sh\n${judge}\n`, 0o755);
  return project;
}

function verdicts(run: GiroRun): readonly string[] {
  return eventsOf(run, 'gate.finished')
    .filter((event) => event.gate === 'review')
    .map((event) => event.verdict);
}

async function callsIn(project: Project): Promise<number> {
  return (await readdir(project.environment['HOME'] ?? '')).filter((name) => name.startsWith('call.')).length;
}

/** Keeps the prompt of each call. */
const count = 'cat > "$(mktemp "$HOME/call.XXXXXX")"\n';

const unreadable: Readonly<Record<string, string>> = {
  nothing: ':',
  prose: "echo 'I cannot decide'",
  'a bold word': "echo '### VERDICT: **BLOCK**'; echo '**PASS**'",
  'cut off': `printf '{"verdict": "pass"'`,
  'two objects that contradict each other': `echo '{"verdict":"fail","findings":[{"message":"no"}]}'; echo '{"verdict":"pass","findings":[]}'`,
  'JSON in the wrong shape': `echo '{"verdict":{"value":"pass"},"findings":[]}'`,
};

test.each(Object.entries(unreadable))(
  'C047 an answer that is %s is no pass: one more call, then errored, and a person is asked',
  async (_name, answer) => {
    const project = await judged(`${count}${answer}`);
    const run = await project.implement();
    expect(run.code).toBe(2);
    expect(verdicts(run)).toEqual(['fail']);
    expect(await callsIn(project)).toBe(2);
    // Nobody is sent off to repair it.
    expect(eventsOf(run, 'attempt.started')).toHaveLength(1);
    expect(eventsOf(run, 'issue.integrated')).toEqual([]);
    expect(eventsOf(run, 'issue.escalated')[0]?.cause).toBe('cannot-run-here');
    const history = await project.issueFile('01-a');
    expect(history).toMatch(/gate review: fail · judge · errored/);
    expect(history).toContain('no valid verdict');
    // The other gates have still come to their verdict, and the raw answer is kept.
    expect(history).toContain('gate test: pass');
    const log = eventsOf(run, 'gate.started').find((event) => event.gate === 'review')?.log ?? '';
    const printed = await readFile(log, 'utf8');
    if (answer !== ':') expect(printed).not.toBe('');
  },
);

test('C047 an answer that becomes readable in the second call counts; that call hears what was wrong, and nothing else', async () => {
  const project = await judged(
    `${count}if [ "$(ls "$HOME"/call.* | wc -l)" = 1 ]; then echo '{"verdict":"SECRET-WORD","findings":[]}'; else echo '{"verdict":"pass","findings":[]}'; fi`,
  );
  const run = await project.implement();
  expect(run.code).toBe(0);
  expect(verdicts(run)).toEqual(['pass']);
  const home = project.environment['HOME'] ?? '';
  const prompts = await Promise.all(
    (await readdir(home)).filter((name) => name.startsWith('call.')).map((name) => readFile(join(home, name), 'utf8')),
  );
  const again = prompts.filter((prompt) => prompt.includes('could not be read'));
  expect(again).toHaveLength(1);
  expect(again[0]).toContain('verdict');
  expect(prompts.join('')).not.toContain('SECRET-WORD');
});

test('C048 only the structured field counts, whatever the prose says', async () => {
  const pass = await judged(
    `cat > /dev/null; echo 'This FAILS badly. REJECT.'; echo '{"verdict":"pass","findings":[]}'; echo 'verdict: fail, blocking issues'`,
  );
  const passed = await pass.implement();
  expect(passed.code).toBe(0);
  expect(verdicts(passed)).toEqual(['pass']);
  const fail = await judged(
    `cat > /dev/null; echo 'PASS, no failures, would approve after'; echo '{"verdict":"fail","findings":[{"message":"name is missing","file":"01-a.txt","line":1},{"message":"and this","file":"nope.txt","line":3},{"message":"far","file":"README.md","line":900}]}'; echo 'approve'`,
    { budget: 'attempts = 1' },
  );
  const failed = await fail.implement();
  expect(failed.code).toBe(2);
  expect(verdicts(failed)).toEqual(['fail']);
  const findings = eventsOf(failed, 'gate.finished').find((event) => event.gate === 'review')?.findings ?? [];
  expect(findings.map(({ file, line, message }) => [file, line, message])).toEqual([
    ['01-a.txt', 1, 'name is missing'],
    ['nope.txt', 3, 'and this (there is no such file)'],
    ['README.md', 900, 'far (the file has only 1 lines)'],
  ]);
});

test('C048 a closing line of an agent: its structured output counts, not the text beside it', async () => {
  const line = JSON.stringify({
    type: 'result',
    is_error: false,
    result: 'I pass this. {"verdict":"pass","findings":[]}',
    structured_output: { verdict: 'fail', findings: [{ message: 'no' }] },
    total_cost_usd: 0.02,
    usage: { input_tokens: 10, output_tokens: 5 },
    modelUsage: { 'some-model': {} },
  });
  const project = await judged(`cat > /dev/null; echo '${line}'`, { budget: 'attempts = 1' });
  const run = await project.implement();
  expect(verdicts(run)).toEqual(['fail']);
  expect(await project.issueFile('01-a')).toMatch(/gate review: fail · judge \(some-model\) · .* · \$0\.02/);
});

test.each([
  ['an empty output', ':'],
  ['free text and no structured part', 'echo "The work looks good to me, I approve it."'],
  ['a closing line without an answer', `echo '{"type":"result","is_error":false,"result":""}'`],
])(
  'C049 %s with exit 0 is errored, after one more call; exit 2, and the agent is not sent off',
  async (_name, answer) => {
    const project = await judged(`${count}${answer}`);
    const run = await project.implement();
    expect(run.code).toBe(2);
    expect(await callsIn(project)).toBe(2);
    expect(eventsOf(run, 'attempt.started')).toHaveLength(1);
    expect(eventsOf(run, 'attempt.judged').map((event) => event.verdict)).toEqual(['operation']);
  },
);

test('a judge is blind: no transcript, summary, History, earlier finding or earlier verdict is in its prompt or its checkout', async () => {
  const markers = ['MARK-TRANSCRIPT', 'MARK-SUMMARY', 'MARK-FINDING', 'MARK-RED', 'gate review', 'gate red'];
  const project = await judged(
    [
      // Everything that it could see: its prompt, its environment, every name and every byte of its folder.
      'seen="$(mktemp "$HOME/call.XXXXXX")"',
      '{ cat; env; find . ; find . -type f -exec cat {} +; cat "$TMPDIR"/* 2>/dev/null; } > "$seen"',
      'test ! -e .git || echo HAS-GIT >> "$seen"',
      'touch probe 2>/dev/null && rm -f probe',
      `if [ "$GIRO_ATTEMPT" = 1 ]; then echo '{"verdict":"fail","findings":[{"message":"MARK-FINDING"}]}'; else echo '{"verdict":"pass","findings":[]}'; fi`,
    ].join('\n'),
    {
      budget: 'attempts = 3\nno-progress = 5',
      agent: [
        'echo MARK-TRANSCRIPT',
        'echo "$GIRO_ATTEMPT" > "$GIRO_ISSUE.txt"',
        `echo '{"status":"done","summary":"MARK-SUMMARY"}'`,
      ].join('\n'),
      toml: '[verify.red]\nrun = "echo MARK-RED; test \\"$(cat 01-a.txt)\\" != 2"\non = ["issue"]\n',
    },
  );
  const run = await project.implement();
  expect(run.code).toBe(0);
  // What is hidden is really there.
  const history = await project.issueFile('01-a');
  for (const marker of ['MARK-SUMMARY', 'MARK-FINDING', 'MARK-RED']) expect(history).toContain(marker);
  const home = project.environment['HOME'] ?? '';
  const calls = (await readdir(home)).filter((name) => name.startsWith('call.'));
  expect(calls.length).toBeGreaterThanOrEqual(3);
  for (const call of calls) {
    const seen = await readFile(join(home, call), 'utf8');
    expect(seen).toContain('Do 01-a.');
    expect(seen).toContain('docs/specs/s1/issues/01-a.md');
    expect(seen).toContain('GIRO_ROLE=judge');
    for (const marker of markers) expect(seen).not.toContain(marker);
    expect(seen).not.toMatch(/## History|phase:|attempt: |HAS-GIT|\.git\/giro/);
  }
});

test('a judge that changes its checkout has no verdict, and the change is reported', async () => {
  const project = await judged(
    `cat > /dev/null; chmod u+w . README.md; echo x >> README.md; echo y > new.txt; echo '{"verdict":"pass","findings":[]}'`,
  );
  const run = await project.implement();
  expect(run.code).toBe(2);
  expect(verdicts(run)).toEqual(['fail']);
  expect(await project.issueFile('01-a')).toMatch(/changed its checkout[^\n]*README\.md, new\.txt/);
});

test('a pass of a judge holds on the merged tree while nothing else landed, and after-green waits', async () => {
  const project = await withJudge(`${count}echo '{"verdict":"pass","findings":[]}'`, {
    issues: { '01-a': {} },
    budget: 'attempts = 2',
    agent: 'echo "$GIRO_ATTEMPT" > 01-a.txt\n',
    verify: [
      '[verify.review]',
      'kind = "prompt"',
      'rubric = "Good."',
      'on = ["issue", "integration"]',
      'after-green = true',
      '[verify.test]',
      'run = "test ! -f 01-a.txt || test \\"$(cat 01-a.txt)\\" = 2"',
    ].join('\n'),
  });
  const run = await project.implement();
  expect(run.code).toBe(0);
  expect(await callsIn(project)).toBe(1);
  const told = eventsOf(run, 'gate.finished').filter((event) => event.gate === 'review');
  expect(told.map(({ verdict, cached, ended }) => [verdict, cached, ended?.kind ?? null])).toEqual([
    ['fail', false, null],
    ['pass', false, 'exited'],
    ['pass', true, null],
  ]);
  expect(await project.issueFile('01-a')).toContain('gate review: fail · not run');
});

test('a skill judges the whole Spec by its own procedure', async () => {
  const project = await withJudge(`${count}echo '{"verdict":"pass","findings":[]}'`, {
    issues: { '01-a': {} },
    files: {
      'README.md': '# T\n',
      'skills/accept/SKILL.md': '---\nname: accept\ndescription: Accepts a Spec.\n---\n# Accept\n\nSTEP-ONE of it.\n',
    },
    verify: 'test = "true"\n[verify.accept]\nkind = "skill"\nskill = "skills/accept/SKILL.md"\non = ["spec"]',
  });
  const run = await project.implement();
  expect(run.code).toBe(0);
  const home = project.environment['HOME'] ?? '';
  const [call = ''] = (await readdir(home)).filter((name) => name.startsWith('call.'));
  const prompt = await readFile(join(home, call), 'utf8');
  expect(prompt).toContain('STEP-ONE of it.');
  expect(prompt).toContain('+by 01-a');
});

test('the smallest example of docs/gates.md runs as it stands there', async () => {
  const text = await readFile(join(import.meta.dirname, '../../docs/gates.md'), 'utf8');
  const [, example = ''] = /\n```toml\n(\[driver\][^`]*)\n```/.exec(text.slice(text.indexOf('\n## Judges'))) ?? [];
  expect(example).toContain('kind = "prompt"');
  const project = await makeProject({ issues: { '01-a': {} } });
  await project.write('giro.toml', example);
  const run = await project.implement();
  expect(run.code).toBe(0);
  expect(verdicts(run)).toEqual(['pass']);
});
