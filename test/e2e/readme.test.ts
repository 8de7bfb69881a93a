/** One test for each promise of the README, which it quotes: a promise that is reworded has to be looked at again. */
import { execFile } from 'node:child_process';
import { chmod, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { parse } from 'smol-toml';
import { describe, expect, test } from 'vitest';
import { blocksOf, readText, root, tableBelow } from '../docs/markdown.js';
import { eventsOf, makeProject, unchangedBy, type GiroRun, type Project, type ProjectSetup } from '../rig/giro.js';

const exec = promisify(execFile);
const readme = readText('README.md');
const blocks = blocksOf(readme);
const program = join(root, 'bin/giro.js');

/** The words of a text, without marks that only style it. */
const words = (text: string): string => text.replaceAll('*', '').replace(/\s+/g, ' ');

/** A test whose name is what the README says. */
function promise(quote: string, run: () => Promise<void>): void {
  test(quote, async () => {
    expect(words(readme)).toContain(words(quote));
    await run();
  });
}

const three = { '01-store': {}, '02-page': { frontmatter: 'depends-on: [01]' }, '03-readme': {} };

/** An agent that keeps every prompt in the person's home, then does something. */
const keepsPrompts = (then: string): string => `cat > "$HOME/prompt-$GIRO_ISSUE-$GIRO_ATTEMPT"\n${then}\n`;
const promptOf = (project: Project, name: string): Promise<string> =>
  readFile(join(project.home, `prompt-${name}`), 'utf8');

const red = 'test = "! test -f 01-store.txt || grep -q good 01-store.txt"';

/** A Spec whose first Issue has asked for a person. */
async function askingProject(setup: Partial<ProjectSetup> = {}): Promise<Project> {
  const agent = keepsPrompts(
    'case $(cat "$HOME/prompt-$GIRO_ISSUE-$GIRO_ATTEMPT") in *"be good"*) word=good;; *) word="try $GIRO_ATTEMPT";; esac\necho "$word" > "$GIRO_ISSUE.txt"',
  );
  const project = await makeProject({ issues: three, agent, verify: red, ...setup });
  expect((await project.implement()).code).toBe(2);
  return project;
}

const startsOf = (run: GiroRun, issue: string): number =>
  eventsOf(run, 'attempt.started').filter((event) => event.issue === issue).length;

/** Gives the person's own programs, and those of this machine, a place on the PATH. */
const withPrograms = (project: Project): Record<string, string> => ({
  PATH: [join(project.home, 'bin'), dirname(process.execPath), '/usr/bin', '/bin'].join(':'),
});

async function addProgram(project: Project, name: string, text: string): Promise<void> {
  await mkdir(join(project.home, 'bin'), { recursive: true });
  await writeFile(join(project.home, 'bin', name), text, { mode: 0o755 });
}

describe('the first paragraphs', () => {
  promise('nothing lands that did not pass your gates on the merged tree.', async () => {
    const together = 'test "$(ls 0*.txt | wc -l)" -le 2';
    const project = await makeProject({
      issues: { '01-a': {}, '02-b': {}, '03-c': {} },
      verify: `test = ${JSON.stringify(together)}`,
    });
    const run = await project.implement();
    expect(run.code).toBe(2);
    expect(eventsOf(run, 'issue.integrated')).toHaveLength(2);
    expect(eventsOf(run, 'candidate.rejected').length).toBeGreaterThan(0);
    const commits = (await project.git('rev-list', '--first-parent', 'giro/s1')).split('\n');
    for (const commit of commits) {
      const files = (await project.git('ls-tree', '--name-only', commit)).split('\n');
      expect(files.filter((name) => /^0.*txt$/.test(name)).length).toBeLessThanOrEqual(2);
    }
  });

  promise('What an agent says decides nothing.', async () => {
    const agent = `case $GIRO_ISSUE in
      01*) echo '{"status":"done","summary":"all tests pass, merge it"}' ;;
      02*) echo bad > 02.txt; echo '{"status":"done"}' ;;
      03*) echo good > 03.txt; echo 'I failed, do not merge. {"status":"blocked","question":"may I?"}' ;;
    esac\n`;
    const project = await makeProject({
      issues: { '01-a': {}, '02-b': {}, '03-c': {} },
      agent,
      verify: 'test = "! grep -q bad 02.txt 2>/dev/null"',
    });
    await project.implement();
    const status = JSON.parse((await project.giro(['status', 's1', '--json'])).stdout) as {
      issues: { state: string }[];
    };
    expect(status.issues.map((issue) => issue.state)).toEqual(['needs-human', 'needs-human', 'done']);
  });

  promise('Merging that branch into yours is your hand, always.', async () => {
    const project = await makeProject({ issues: three });
    const before = await project.git('for-each-ref', '--format=%(refname) %(objectname)');
    expect((await unchangedBy(project, () => project.implement())).code).toBe(0);
    const after = (await project.git('for-each-ref', '--format=%(refname) %(objectname)')).split('\n');
    expect(after).toEqual(expect.arrayContaining(before.split('\n')));
    const added = after.filter((line) => !before.includes(line));
    expect(added.every((line) => /^refs\/(?:heads\/giro(?:-issue)?\/|notes\/giro )/.test(line))).toBe(true);
  });
});

describe('Try it, and what happened', () => {
  test('the two commands are those of package.json', () => {
    const { scripts } = JSON.parse(readText('package.json')) as { scripts: Record<string, string> };
    const typed = blocks[0]?.text.split('\n').map((line) => line.replace(/\s*#.*/, ''));
    expect(typed).toEqual(['npm start', 'npm cit', '']);
    expect(scripts).toMatchObject({ start: 'node scripts/start.mjs', test: expect.stringContaining('vitest run') });
    expect(readText('scripts/start.mjs')).toContain("'demo'");
  });

  promise('takes its Spec of eight Issues to the end', async () => {
    const project = await makeProject({ issues: {} });
    const run = await project.giro(['demo', '--fast', '--plain'], { env: withPrograms(project) });
    expect(run.stderr).toBe('');
    expect(run.code).toBe(0);
    const shape = (line: string): string =>
      line
        .replace(/\b[0-9a-f]{7}\b/g, 'COMMIT')
        .replace(/^\d\d:\d\d:\d\d/, 'TIME')
        .replace(/\(\d[\d.]* m?s/, '(TIME')
        .replace(/\d tests?\)/, 'N tests)')
        .replace(/slot \d/, 'slot N')
        // Which of two Issues that are at odds comes second depends on the machine.
        .replace(/0[13]-[\w-]+ +/, 'LEDGER OR RATES ')
        .replace(/0[67]-[\w-]+ +/, 'RENAME OR ALERTS ');
    const said = new Set(run.stdout.split('\n').map(shape));
    const quoted = blocks
      .filter(({ language, text }) => language === 'text' && /^(?:\d\d:|\* )/.test(text))
      .flatMap(({ text }) => text.trimEnd().split('\n'));
    expect(quoted.length).toBeGreaterThan(20);
    expect(quoted.map(shape).filter((line) => !said.has(line))).toEqual([]);
  });

  promise('the verdict holds without being paid for twice', async () => {
    const project = await makeProject({ issues: { '01-a': {} }, verify: 'test = "echo ran >> \\"$HOME/runs\\""' });
    expect((await project.implement()).code).toBe(0);
    // Once on the base, before any agent; once on the work.
    expect(await readFile(join(project.home, 'runs'), 'utf8')).toBe('ran\nran\n');
  });
});

describe('How it works', () => {
  promise('Recorded before the agent starts, so that a crash counts.', async () => {
    const agent = 'touch "$HOME/begun"\nsleep 60\n';
    const project = await makeProject({ issues: { '01-a': {} }, agent, budget: 'attempts = 1' });
    const running = project.start(['implement', 's1', '--json']);
    const { worktree } = await running.event('attempt.started');
    // The event comes before the agent: one that begins after the kill would not be found below.
    const begun = (): Promise<unknown> => readFile(join(project.home, 'begun')).catch(() => null);
    await expect.poll(begun, { timeout: 30_000 }).not.toBeNull();
    expect(await project.issueFile('01-a', 'giro-issue/s1/01-a')).toMatch(/phase: working[\s\S]*### Attempt 1 /);
    running.kill('SIGKILL');
    await running.ended;
    await endAgents(worktree);
    const again = await project.implement();
    expect(again.code).toBe(2);
    expect(startsOf(again, '01-a')).toBe(0);
  });

  promise('Kill giro at any moment and run the same command again: it goes on from there.', async () => {
    // An attempt that a kill interrupts counts (L5), so the budget must outlast the kills.
    const project = await makeProject({ issues: three, verify: 'test = "sleep 0.2"', budget: 'attempts = 9' });
    // Each run has its moment: 02-page can neither be judged nor merged before the others are integrated.
    for (const moment of ['attempt.finished', 'gate.started', 'candidate.made'] as const) {
      const running = project.start(['implement', 's1', '--json']);
      await running.event(moment);
      running.kill('SIGKILL');
      await running.ended;
    }
    const end = await project.implement();
    expect(end.code).toBe(0);
    const landed = (await project.git('log', '--first-parent', '--format=%s', 'giro/s1'))
      .split('\n')
      .filter((line) => /^0\d-/.test(line));
    expect(landed.map((line) => line.slice(0, 2)).sort()).toEqual(['01', '02', '03']);
  });
});

describe('On your own repository', () => {
  promise('`giro init` finds your test command and your setup command', async () => {
    const project = await packageProject();
    const run = await project.giro(['init'], { env: withPrograms(project) });
    expect(run.code).toBe(0);
    const policy = await readFile(join(project.path, 'giro.toml'), 'utf8');
    expect(policy).toMatch(/^test = "npm test"/m);
    expect(policy).toMatch(/^setup = "npm ci"/m);
    const [line = ''] = /^run = .*$/m.exec(policy) ?? [];
    expect(parse(line)['run']).toContain('claude');
  });

  promise('writes giro.toml and an example Spec; touches nothing that exists', async () => {
    const project = await packageProject();
    await project.write('giro.toml', '# mine\n');
    await project.giro(['init'], { env: withPrograms(project) });
    const before = await project.fingerprint();
    const again = await project.giro(['init'], { env: withPrograms(project) });
    expect(again.code).toBe(0);
    expect(await project.fingerprint()).toBe(before);
    expect(await readFile(join(project.path, 'giro.toml'), 'utf8')).toBe('# mine\n');
  });

  promise('the plan, the waves, the gates; nothing is started or written', async () => {
    const project = await makeProject({ issues: three, agent: 'touch "$HOME/started"\n' });
    const before = await project.git('for-each-ref');
    const run = await unchangedBy(project, () => project.giro(['implement', 's1', '--dry-run']));
    expect(run.code).toBe(0);
    expect(run.stdout).toMatch(/wave 1 +01-store, 03-readme\nwave 2 +02-page\ngate +test: true/);
    expect(await project.git('for-each-ref')).toBe(before);
    await expect(readFile(join(project.home, 'started'))).rejects.toThrow();
  });

  promise(
    'the last lines give the commands that bring the branch into yours, tried before they are shown',
    async () => {
      const project = await packageProject();
      const env = withPrograms(project);
      await addProgram(
        project,
        'claude',
        '#!/bin/sh\ncat > /dev/null\nmkdir -p docs\necho "npm test" >> docs/development.md\necho "see docs" >> README.md\n',
      );
      await project.giro(['init'], { env });
      await project.write(
        'giro.toml',
        (await readFile(join(project.path, 'giro.toml'), 'utf8')).replace(/^setup.*$/m, ''),
      );
      const run = await project.giro(['implement', 'example'], { env });
      expect(run.stdout).toContain('proof: 2 of 2 Issues integrated');
      const [, command = ''] = /^take it: +(.*)$/m.exec(run.stdout) ?? [];
      await exec('sh', ['-ec', command.replace(/ {3}\(.*$/, '')], {
        cwd: project.path,
        env: {
          ...env,
          HOME: project.home,
          GIT_CONFIG_COUNT: '2',
          GIT_CONFIG_KEY_0: 'user.name',
          GIT_CONFIG_VALUE_0: 'Me',
          GIT_CONFIG_KEY_1: 'user.email',
          GIT_CONFIG_VALUE_1: 'me@localhost',
        },
      });
      expect(await readFile(join(project.path, 'docs/development.md'), 'utf8')).toContain('npm test');
      expect(await project.git('branch', '--show-current')).toBe('main');
      const status = await project.giro(['status', 'example'], { env });
      expect(status.stdout).toMatch(/state done .*\n[\s\S]*✔ 02-link-from-readme/);
    },
  );

  promise('a run takes the Spec as it stands in your checkout. Code starts from the commit you are on.', async () => {
    const project = await makeProject({
      issues: { '01-a': { body: 'Never committed.' } },
      agent: keepsPrompts('cp README.md seen.txt'),
    });
    await project.write('README.md', '# changed, not committed\n');
    expect((await project.implement()).code).toBe(0);
    expect(await promptOf(project, '01-a-1')).toContain('Never committed.');
    expect(await project.show('giro/s1', 'seen.txt')).toBe('# Test');
  });

  promise('One Issue can be run alone (`giro implement example/02`)', async () => {
    const project = await makeProject({ issues: three });
    const early = await project.giro(['implement', 's1/02']);
    expect(early.code).toBe(1);
    expect(early.stderr).toContain('01-store');
    const run = await project.giro(['implement', 's1/1', '--json']);
    expect(run.code).toBe(0);
    expect(eventsOf(run, 'issue.integrated').map((event) => event.issue)).toEqual(['01-store']);
    expect((await project.giro(['status', 's1/01'])).stdout).toMatch(/## History[\s\S]*verdict: pass/);
  });
});

describe('When a person is asked', () => {
  promise('Issues that depend on the one that asks wait and name it; everything else still finishes.', async () => {
    const project = await askingProject();
    const { stdout } = await project.giro(['status', 's1']);
    const shape = (text: string): readonly string[] =>
      text
        .split('\n')
        .map((line) => line.replace(/ {2}(?:Keep sessions|Login page|Say so in the readme|Issue \S+)$/, '').trimEnd());
    const quoted = blocks.find(({ text }) => text.startsWith('! 01-store'))?.text ?? '';
    expect(shape(quoted).length).toBeGreaterThan(4);
    expect(shape(stdout)).toEqual(expect.arrayContaining([...shape(quoted)]));
  });

  promise('Edit the Issue in your checkout. The next attempt is told the new text.', async () => {
    const project = await askingProject();
    await project.writeIssue('01-store', { body: 'Please be good.' });
    const run = await project.implement();
    expect(run.code).toBe(0);
    expect(await promptOf(project, '01-store-3')).toContain('Please be good.');
  });

  promise(
    'Fix it yourself with a commit on the branch `giro-issue/auth/01-store`. It is judged and integrated without an agent.',
    async () => {
      const project = await askingProject();
      const folder = join(project.folder, 'mine');
      await project.git('worktree', 'add', '-q', folder, 'giro-issue/s1/01-store');
      await writeFile(join(folder, '01-store.txt'), 'good\n');
      await project.git('-C', folder, 'commit', '-q', '-a', '-m', 'by hand');
      await project.git('worktree', 'remove', folder);
      const run = await project.implement();
      expect(run.code).toBe(0);
      expect(startsOf(run, '01-store')).toBe(0);
      expect(await project.show('giro/s1', '01-store.txt')).toBe('good');
    },
  );

  promise('Give it up with `state: wontfix` in its file, when nothing depends on it.', async () => {
    const project = await askingProject({ issues: { '01-store': {}, '03-readme': {} } });
    await project.write(
      'docs/specs/s1/issues/01-store.md',
      '---\nstate: wontfix\n---\n# Issue 01-store\n\nDo 01-store.\n',
    );
    expect((await project.implement()).code).toBe(0);
    expect(await project.show('giro/s1', '01-store.txt')).toBeNull();
  });

  promise('Change nothing, when the trouble was around it. Running again is an answer too.', async () => {
    const project = await makeProject({ issues: { '01-a': {} }, verify: 'test = "test -f \\"$HOME/repaired\\""' });
    expect((await project.implement()).code).toBe(2);
    await writeFile(join(project.home, 'repaired'), '');
    expect((await project.implement()).code).toBe(0);
  });
});

describe('Driving Claude Code', () => {
  const policyText = blocks.find(({ text }) => text.includes('claude-code'))?.text ?? '';
  const lineOf = (text: string): readonly string[] => {
    const { driver } = parse(text) as unknown as { driver: Record<string, { run: string[] }> };
    return driver['claude-code']?.run ?? [];
  };

  promise(
    'The prompt (rules, Issue, Spec, and after a red attempt its findings) goes to stdin, which is then closed.',
    async () => {
      const project = await makeProject({
        issues: { '01-a': { body: 'What the Issue wants.' } },
        verify: 'test = "true"',
      });
      await project.write(
        'giro.toml',
        policyText
          .replace('"npm test"', `'! test -f 01-a.txt || grep -q "attempt 2" 01-a.txt'`)
          .replace('setup = "npm ci"', ''),
      );
      await addProgram(
        project,
        'claude',
        `#!/bin/sh
printf '%s\\n' "$@" > "$HOME/argv-$GIRO_ATTEMPT"
cat > "$HOME/prompt-$GIRO_ATTEMPT"
env > "$HOME/env-$GIRO_ATTEMPT"
echo "attempt $GIRO_ATTEMPT" > "$GIRO_ISSUE.txt"
echo '{"type":"system","subtype":"init"}'
echo '{"type":"result","subtype":"success","is_error":false,"result":"Done. {\\"status\\":\\"done\\",\\"summary\\":\\"wrote it\\"}","permission_denials":[]}'
`,
      );
      const run = await project.giro(['implement', 's1', '--json'], {
        env: { ...withPrograms(project), ANTHROPIC_API_KEY: 'key', OTHER_KEY: 'other', CLAUDECODE: '1' },
      });
      expect(run.stderr).toBe('');
      expect(run.code).toBe(0);
      const read = (name: string): Promise<string> => readFile(join(project.home, name), 'utf8');
      expect((await read('argv-1')).split('\n').slice(0, -1)).toEqual(lineOf(policyText).slice(1));
      expect(await read('prompt-1')).toMatch(/Rules:[\s\S]*What the Issue wants\.[\s\S]*What is wanted\./);
      expect(await read('prompt-2')).toContain('gate test failed: exit 1');
      expect(await read('env-1')).toContain('ANTHROPIC_API_KEY=key');
      expect(await read('env-1')).not.toMatch(/OTHER_KEY|CLAUDECODE/);
      expect(await project.issueFile('01-a')).toContain('worker says: wrote it');
    },
  );

  test('the line is that of docs/drivers.md, where every option is explained', () => {
    const line = lineOf(policyText);
    expect(line.length).toBeGreaterThan(10);
    const page = readText('docs/drivers.md');
    const [section = ''] = page.split('\n## Claude Code\n')[1]?.split('\n## ') ?? [];
    expect(lineOf(blocksOf(section)[0]?.text ?? '')).toEqual(line);
    const prose = section
      .split('```')
      .filter((_, index) => index % 2 === 0)
      .join('');
    for (const option of line.filter((word) => word.startsWith('-') && word !== '--no-session-persistence'))
      expect(prose).toContain(option);
  });
});

describe('Gates', () => {
  promise('so that nothing an agent left lying about makes it green', async () => {
    const project = await makeProject({
      files: { '.gitignore': 'build/\n' },
      issues: { '01-a': {} },
      agent: 'mkdir build\necho x > build/out\necho x > a.txt\n',
      verify: 'test = "test -f build/out"',
    });
    expect((await project.implement()).code).toBe(2);
  });

  promise('All due gates run, and the next attempt sees every finding, not just the first.', async () => {
    const project = await makeProject({
      issues: { '01-a': {} },
      agent: keepsPrompts('echo "$GIRO_ATTEMPT" > a.txt'),
      verify: 'one = "echo first reason; exit 1"\ntwo = "echo second reason; exit 1"',
    });
    await project.implement();
    expect(await promptOf(project, '01-a-2')).toMatch(/first reason[\s\S]*second reason/);
  });

  promise(
    'A missing tool, a time-out, a kill and a rewritten file are not a pass. Without a gate giro does not start.',
    async () => {
      for (const command of ['no-such-tool', 'sleep 30', 'kill -9 $$', 'echo x >> README.md']) {
        const project = await makeProject({
          issues: { '01-a': {} },
          budget: 'attempts = 1',
          verify: `[verify.test]\nrun = ${JSON.stringify(command)}\ntimeout = "1s"`,
        });
        expect({ command, code: (await project.implement()).code }).toEqual({ command, code: 2 });
      }
      const none = await (await makeProject({ issues: { '01-a': {} }, verify: '' })).implement();
      expect(none).toMatchObject({ code: 1, stdout: '' });
      expect(none.stderr).toContain('no gate is configured');
    },
  );

  promise(
    'Which gates run is read from your `giro.toml` in your checkout, never from the tree that is judged',
    async () => {
      const project = await makeProject({
        issues: { '01-a': {} },
        agent: 'echo x > a.txt\nsed "s/^test = .*/test = \\"true\\"/" giro.toml > t && mv t giro.toml\n',
        verify: 'test = "test ! -f a.txt"',
      });
      await project.commit('everything');
      expect((await project.implement()).code).toBe(2);
    },
  );

  promise(
    'git hooks are not run by giro; `giro init` proposes yours as gates, and a run says so in one line when it finds some.',
    async () => {
      const project = await makeProject({ issues: { '01-a': {} } });
      for (const hook of ['pre-commit', 'post-checkout', 'post-commit', 'reference-transaction']) {
        await project.write(
          `.git/hooks/${hook}`,
          `#!/bin/sh\ntouch "${project.home}/ran-${hook}"\nnpm run lint\n`,
          0o755,
        );
      }
      const run = await project.implement();
      expect(run.code).toBe(0);
      const notices = eventsOf(run, 'run.notice').filter((event) => event.message.includes('hooks are not run'));
      expect(notices).toHaveLength(1);
      expect((await exec('ls', [project.home])).stdout).not.toContain('ran-');
      await rm(join(project.path, 'giro.toml'));
      await project.giro(['init'], { env: withPrograms(project) });
      expect(await readFile(join(project.path, 'giro.toml'), 'utf8')).toMatch(
        /^# [\w-]+ = .*(?:npm run lint|\.git\/hooks)/m,
      );
    },
  );
});

describe('Safety', () => {
  promise('It never writes your checkout, index, stash, HEAD or config.', async () => {
    const project = await askingProject({ issues: { '01-store': {}, '02-b': {} } });
    await project.write('staged.txt', 'x');
    await project.git('add', 'staged.txt');
    await unchangedBy(project, () => project.implement());
  });

  promise('Its own git runs no hook, filter, pager or editor, also none that an agent planted.', async () => {
    const project = await makeProject({
      issues: { '01-a': {}, '02-b': {} },
      agent: `common=$(git rev-parse --git-common-dir)
plant='touch "$HOME/ran"; true'
for hook in pre-commit post-commit post-checkout post-index-change reference-transaction; do
  printf '#!/bin/sh\\n%s\\n' "$plant" > "$common/hooks/$hook"
  chmod +x "$common/hooks/$hook"
done
for key in core.fsmonitor filter.x.clean filter.x.smudge core.pager core.editor diff.external; do
  git config --file "$common/config" "$key" "$plant"
done
echo '* filter=x' > .gitattributes
echo x > "$GIRO_ISSUE.txt"
`,
    });
    const ran = (): Promise<string> => readFile(join(project.home, 'ran'), 'utf8');
    expect(eventsOf(await project.implement(), 'attempt.finished').length).toBeGreaterThan(1);
    await expect(ran()).rejects.toThrow();
    // What was planted is real: plain git runs it.
    await project.git('status').catch(() => undefined);
    expect(await ran()).toBe('');
  });

  promise('what has to go away is kept under `refs/giro/salvage/` and printed', async () => {
    const project = await makeProject({
      issues: { '01-a': {} },
      agent:
        'if [ -f "$HOME/go" ]; then echo y > done.txt; else echo precious > work.txt; touch "$HOME/at-work"; sleep 60; fi\n',
    });
    const running = project.start(['implement', 's1', '--json']);
    const { worktree } = await running.event('attempt.started');
    await expect
      .poll(() => readFile(join(worktree, 'work.txt'), 'utf8').catch(() => ''), { timeout: 20_000 })
      .toBe('precious\n');
    running.kill('SIGKILL');
    await running.ended;
    await endAgents(worktree);
    await writeFile(join(project.home, 'go'), '');
    const again = await project.giro(['implement', 's1', '--plain']);
    expect(again.code).toBe(0);
    const [ref = ''] = /refs\/giro\/salvage\/\S+/.exec(again.stdout) ?? [];
    expect(await project.show(ref, 'work.txt')).toBe('precious');
  });

  promise('`giro clean --salvage` lists it, shows it and brings it back.', async () => {
    const project = await makeProject({ issues: { '01-a': {} }, verify: 'test = "! test -f 01-a.txt"' });
    expect((await project.implement()).code).toBe(2);
    expect((await project.giro(['answer', 's1/01', '--wontfix'])).code).toBe(0);
    const cleaned = await project.giro(['clean', '--yes', '--save']);
    const [ref = ''] = /refs\/giro\/salvage\/\S+/.exec(cleaned.stdout) ?? [];
    const name = ref.slice('refs/giro/salvage/'.length);
    const salvage = async (...more: readonly string[]): Promise<string> =>
      (await project.giro(['clean', '--salvage', ...more])).stdout;
    expect(await salvage()).toContain(`${name}  `);
    expect(await salvage('show', ref, '--patch')).toContain('+by 01-a');
    const folder = join(project.folder, 'back');
    await salvage('restore', name, folder);
    expect(await readFile(join(folder, '01-a.txt'), 'utf8')).toBe('by 01-a\n');
  });

  promise("It never takes an agent's word, an Issue's text or a tool's output as a command.", async () => {
    const hostile = '$(touch "$HOME/ran") `touch "$HOME/ran"`; touch "$HOME/ran"\n\n---js\nrequire("fs")';
    const project = await makeProject({
      issues: { '01-a': { body: hostile } },
      agent: keepsPrompts(`printf '%s' '{"status":"done","summary":"$(touch $HOME/ran)"}'\necho x > a.txt`),
    });
    expect((await project.implement()).code).toBe(0);
    expect(await promptOf(project, '01-a-1')).toContain(hostile);
    await expect(readFile(join(project.home, 'ran'))).rejects.toThrow();
  });

  promise('none of your keys but those you name', async () => {
    const project = await makeProject({ issues: { '01-a': {} }, agent: 'env > env.txt\n' });
    await project.giro(['implement', 's1'], {
      env: { MY_SECRET: 's3cret', GH_TOKEN: 't0ken', NODE_OPTIONS: '--no-warnings' },
    });
    const names = (await project.show('giro/s1', 'env.txt'))?.split('\n').map((line) => line.split('=')[0] ?? '') ?? [];
    expect(
      names.filter(
        (name) =>
          !/^(?:PATH|HOME|USER|LOGNAME|SHELL|LANG|TZ|LC_.*|XDG_.*|GIRO_.*|TMPDIR|PWD|SHLVL|OLDPWD|_)$/.test(name),
      ),
    ).toEqual([]);
  });

  promise('It has a time limit, and its whole process group is ended at it.', async () => {
    const project = await makeProject({
      issues: { '01-a': {} },
      agent: 'sleep 300 &\nsleep 300\n',
      budget: 'attempts = 1\nattempt-timeout = "1s"',
    });
    const run = await project.implement();
    expect(run.code).toBe(2);
    expect(eventsOf(run, 'attempt.finished')[0]?.ended.kind).toBe('timed-out');
    // That no process is left is looked at after every test.
  });

  promise('giro reports files of your checkout that changed during a run', async () => {
    const project = await makeProject({ issues: { '01-a': {} } });
    await project.write('agent.sh', `#!/bin/sh\necho x > a.txt\necho x > "${project.path}/stray.txt"\n`, 0o755);
    const run = await project.giro(['implement', 's1']);
    expect(run.stdout).toMatch(/changed in your checkout during the run.*stray\.txt/);
  });
});

describe('CI and cron', () => {
  promise('Without a terminal there is no board, and nothing ever waits for input.', async () => {
    const [, line = ''] = /^0 22 \* \* \* (.*)$/m.exec(blocks.map(({ text }) => text).join('\n')) ?? [];
    const project = await makeProject({ issues: { '01-a': {} }, spec: 'auth' });
    await addProgram(project, 'giro', `#!/bin/sh\nexec "${process.execPath}" "${program}" "$@"\n`);
    const command = line.replace('"$HOME/project"', `"${project.path}"`);
    expect(command).not.toBe(line);
    await exec('/bin/sh', ['-c', command], {
      env: {
        HOME: project.home,
        PATH: `${join(project.home, 'bin')}:/usr/bin:/bin`,
        XDG_CACHE_HOME: join(project.folder, 'cache'),
      },
      cwd: '/',
    });
    expect(await readFile(join(project.home, 'giro.log'), 'utf8')).toMatch(/\nproof: 1 of 1 Specs proved/);
  });

  promise('`--json` writes [events](docs/events.md) as NDJSON. The exit code is the result.', async () => {
    const project = await askingProject();
    const run = await project.implement();
    const lines = run.stdout.trimEnd().split('\n');
    expect(lines.every((line) => line.startsWith('{"v":1,'))).toBe(true);
    expect(run.events.at(-1)).toMatchObject({ type: 'run.finished', exit: run.code });
  });

  promise('`giro stop` ends what runs, and waits for it.', async () => {
    const project = await makeProject({
      issues: three,
      agent: '[ -f "$HOME/go" ] || sleep 60\necho x > "$GIRO_ISSUE.txt"\n',
    });
    const running = project.start(['implement', 's1', '--json']);
    await running.event('attempt.started');
    expect((await project.giro(['stop'])).code).toBe(0);
    expect((await running.ended).code).toBe(2);
    await writeFile(join(project.home, 'go'), '');
    expect((await project.implement()).code).toBe(0);
  });

  promise('every run ends with 2 and says so, until you take it away.', async () => {
    const project = await makeProject({ issues: three });
    await mkdir(join(project.path, '.git/giro'));
    await writeFile(join(project.path, '.git/giro/STOP'), 'no disk\n');
    for (const target of ['s1', 'docs/specs']) {
      const refused = await project.giro(['implement', target]);
      expect(refused.code).toBe(2);
      expect(refused.stdout).toContain('the STOP file (no disk) is there, nothing was started');
    }
    await rm(join(project.path, '.git/giro/STOP'));
    expect((await project.implement()).code).toBe(0);
  });

  promise('a job on a fresh machine goes on where the last one stopped, if they travel with it', async () => {
    const script = blocks.find(({ text }) => text.includes('git fetch origin'))?.text ?? '';
    const first = await askingProject({ spec: 'auth', files: { 'README.md': '# Test\n' } });
    await first.commit('Spec and policy');
    const origin = join(first.folder, 'origin.git');
    await first.git('clone', '-q', '--bare', first.path, origin);
    const second = join(first.folder, 'second');
    await first.git('clone', '-q', origin, second);
    await addProgram(first, 'giro', `#!/bin/sh\nexec "${process.execPath}" "${program}" "$@"\n`);
    const env = { ...first.environment, ...withPrograms(first) };
    const job = (): Promise<unknown> => exec('sh', ['-e', '-c', script], { cwd: second, env });
    await expect(job()).rejects.toMatchObject({ code: 2 });
    await writeFile(
      join(second, 'docs/specs/auth/issues/01-store.md'),
      '---\nstate: ready\n---\n# Issue 01-store\n\nPlease be good.\n',
    );
    await job();
    const landed = await first.git('--git-dir', origin, 'log', '--first-parent', '--format=%s', 'giro/auth');
    expect(landed).toMatch(/^auth: validated\n/);
    expect(landed.match(/^03-readme/gm)).toHaveLength(1);
  });

  promise(
    'One engine at a time runs a Spec of a repository; a second one ends with exit 1 and names the first.',
    async () => {
      const project = await makeProject({
        issues: { '01-a': {} },
        agent: 'until [ -f "$HOME/go" ]; do sleep 0.05; done\necho x > a.txt\n',
      });
      const running = project.start(['implement', 's1', '--json']);
      await running.event('attempt.started');
      const second = await project.giro(['implement', 's1']);
      expect(second.code).toBe(1);
      expect(second.stderr).toContain(`process ${String(running.pid)}`);
      await writeFile(join(project.home, 'go'), '');
      expect((await running.ended).code).toBe(0);
    },
  );
});

describe('Configuration, exit codes, and the rest', () => {
  promise(
    'A wrong type, an unknown key or a bad value is an error with its place and a fix; all of them are reported at once, and nothing starts.',
    async () => {
      const project = await makeProject({ issues: { '01-a': {} } });
      await project.write(
        'giro.toml',
        '[driver]\ndefault = "command"\n[driver.command]\nrun = 7\n[budget]\natempts = 3\nattempt-timeout = "soon"\n[verify]\ntest = "true"\n',
      );
      const run = await unchangedBy(project, () => project.giro(['implement', 's1']));
      expect(run).toMatchObject({ code: 1, stdout: '' });
      expect(run.stderr).toMatch(
        /giro\.toml:4:7: [\s\S]*giro\.toml:6:1: unknown key `atempts`[\s\S]*did you mean `attempts`[\s\S]*giro\.toml:7:19: /,
      );
    },
  );

  test('every exit code of the table is one that the program ends with', async () => {
    const rows = tableBelow(readme, '## Exit codes');
    expect(rows.map(([code]) => code)).toEqual(['0', '2', '1', '130, 143, 129']);
    const project = await askingProject();
    expect((await project.giro(['implement', 's1', '--nonsense'])).code).toBe(1);
    await project.writeIssue('01-store', { body: 'be good' });
    await project.write('agent.sh', '#!/bin/sh\nsleep 60\n', 0o755);
    const running = project.start(['implement', 's1', '--json']);
    await running.event('attempt.started');
    running.kill('SIGTERM');
    expect((await running.ended).signal).toBe('SIGTERM');
    await project.write('agent.sh', '#!/bin/sh\necho good > "$GIRO_ISSUE.txt"\n', 0o755);
    expect((await project.implement()).code).toBe(0);
  });

  promise('the findings are in the next prompt; the attempts are bounded', async () => {
    const project = await makeProject({
      issues: { '01-a': {} },
      agent: keepsPrompts('echo "$GIRO_ATTEMPT" > a.txt'),
      verify: 'test = "echo because of $(cat a.txt); exit 1"',
    });
    const run = await project.implement();
    expect(startsOf(run, '01-a')).toBe(2);
    expect(await promptOf(project, '01-a-2')).toContain('because of 1');
  });

  promise('What of it is already a key or a target is refused with a message, never half done', async () => {
    const project = await makeProject({ issues: { '01-a': {} } });
    const policy = await readFile(join(project.path, 'giro.toml'), 'utf8');
    for (const target of ['make it fast', 'github:a/b']) {
      expect(await project.giro(['implement', target])).toMatchObject({
        code: 1,
        stderr: expect.stringContaining('in this version'),
      });
    }
    for (const later of ['[sandbox]\nkind = "bwrap"', '[driver.codex]\nkind = "codex"', '[worktree]\ngit = "sealed"']) {
      await project.write('giro.toml', `${policy}\n${later}\n`);
      expect(await project.giro(['implement', 's1'])).toMatchObject({
        code: 1,
        stdout: '',
        stderr: expect.stringContaining('not available in this version'),
      });
    }
    expect(await project.git('for-each-ref', 'refs/heads/giro')).toBe('');
  });
});

describe('docs/exit-codes.md and docs/troubleshooting.md', () => {
  test('a Spec that is done starts nothing; with another gate its tip is judged again', async () => {
    const project = await makeProject({ issues: { '01-a': {} } });
    expect((await project.implement()).code).toBe(0);
    const again = await project.implement();
    expect(again.code).toBe(0);
    expect(again.events.map((event) => event.type)).toEqual(['run.finished']);
    const policy = await readFile(join(project.path, 'giro.toml'), 'utf8');
    await project.write('giro.toml', policy.replace('test = "true"', 'test = "test ! -f 01-a.txt"'));
    expect((await project.implement()).code).toBe(2);
  });

  test('what is left of a Spec can be taken away with the commands of docs/troubleshooting.md', async () => {
    const project = await askingProject({ spec: 'auth' });
    const script =
      blocksOf(readText('docs/troubleshooting.md')).find(({ text }) => text.includes('branch -D giro/auth'))?.text ??
      '';
    expect(await project.git('worktree', 'list')).toContain('/auth/w');
    for (const [program = '', ...args] of script
      .trim()
      .split('\n')
      .map((line) => line.split(' '))) {
      if (program === 'giro') expect(await project.giro(args)).toMatchObject({ code: 0 });
      else await exec(program, args, { cwd: project.path, env: project.environment });
    }
    expect(await project.git('worktree', 'list')).not.toContain('/auth/w');
    expect(await project.git('branch', '--format=%(refname:short)')).toBe('main');
  });
});

/** A project of npm's kind that giro has not seen yet. */
async function packageProject(): Promise<Project> {
  const files = {
    'README.md': '# A package\n',
    'package.json': '{ "name": "a-package", "version": "1.0.0", "scripts": { "test": "node --test" } }\n',
    'package-lock.json':
      '{ "name": "a-package", "version": "1.0.0", "lockfileVersion": 3, "requires": true, "packages": {} }\n',
    'test/a.test.js': "require('node:test')('works', () => {});\n",
  };
  const project = await makeProject({ files, issues: {} });
  for (const made of ['docs', 'giro.toml', 'agent.sh']) await rm(join(project.path, made), { recursive: true });
  await addProgram(project, 'claude', '#!/bin/sh\nexit 0\n');
  await chmod(join(project.home, 'bin', 'claude'), 0o755);
  return project;
}

/** What a giro that was killed left running in a worktree. */
async function endAgents(worktree: string): Promise<void> {
  await exec('sh', [
    '-c',
    `for p in /proc/[0-9]*; do case $(readlink "$p/cwd") in "$1"*) kill -9 "$(basename "$p")";; esac; done; exit 0`,
    'sh',
    worktree,
  ]);
}
