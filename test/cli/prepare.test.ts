import { rename, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { prepare } from '../../src/cli/prepare.js';
import type { Failure } from '../../src/failure.js';
import { makeRepository, openRepository, type TestRepository } from '../rig/repository.js';
import { issueText, pathOf, spec, specText } from '../store/rig.js';

const toml = `[driver]\ndefault = "command"\n[driver.command]\nrun = ["./agent.sh"]\n[verify]\ntest = "true"\n`;

async function project(files: Readonly<Record<string, string | null>> = {}): Promise<TestRepository> {
  const repository = await makeRepository();
  const all = {
    'giro.toml': toml,
    'agent.sh': '#!/bin/sh\n',
    [`docs/specs/${spec}/SPEC.md`]: specText(),
    [pathOf('01-a')]: issueText(),
    ...files,
  };
  for (const [path, text] of Object.entries(all)) {
    if (text !== null) await repository.write(path, text, path === 'agent.sh' ? 0o755 : 0o644);
  }
  return repository;
}

async function prepared(repository: TestRepository, name = spec) {
  const git = await openRepository(repository);
  return prepare({
    git,
    top: repository.path,
    spec: name,
    issue: null,
    named: true,
    own: repository.own,
    processors: 2,
    at: '2030-01-01T00:00:00.000Z',
  });
}

/** Why a run does not start, as one text; everything that is wrong, in order. */
async function refusal(
  files: Readonly<Record<string, string | null>>,
  change?: (repository: TestRepository) => Promise<unknown>,
): Promise<string> {
  const repository = await project(files);
  await change?.(repository);
  const refs = (): Promise<string> => repository.git('for-each-ref', '--format=%(refname)');
  const before = [await repository.fingerprint(), await refs()];
  const answer = await prepared(repository);
  expect([await repository.fingerprint(), await refs()]).toEqual(before);
  return answer.ok ? 'nothing' : textOf(answer.failure);
}

function textOf(failure: Failure): string {
  if (failure.kind !== 'diagnostics') return [failure.kind, failure.message, failure.hint ?? ''].join('\n');
  return failure.diagnostics
    .map((one) => `${one.file}:${String(one.line ?? 0)}: ${one.message} (${one.hint ?? ''})`)
    .join('\n');
}

test('a Spec that is in order may start, and nothing was written for it', async () => {
  const repository = await project();
  const answer = await prepared(repository);
  if (!answer.ok) throw new Error(textOf(answer.failure));
  expect(answer.value).toMatchObject({ spec, tip: null, before: 'draft' });
  expect(answer.value.parsed.spec.issues.map((issue) => issue.id)).toEqual(['01-a']);
  expect(await repository.git('for-each-ref', '--format=%(refname)')).toBe('refs/heads/main');
});

describe('a run does not start', () => {
  test('without giro.toml', async () => {
    expect(await refusal({ 'giro.toml': null })).toMatch(
      /^environment\nthere is no giro\.toml in .*\nwrite one with: giro init$/,
    );
  });

  test('with a giro.toml that is wrong: every mistake is named', async () => {
    const text = await refusal({ 'giro.toml': `${toml}[limits]\nagent = 1\n[budget]\nattempts = "two"\n` });
    expect(text).toMatch(/^giro\.toml:\d+: .*agent/m);
    expect(text).toMatch(/^giro\.toml:\d+: .*attempts/m);
  });

  test.each([
    ['that is not there', null, 0o755, 'names ./agent.sh, but there is no'],
    ['that cannot be run', '#!/bin/sh\n', 0o644, 'chmod +x'],
  ])('with an agent program %s', async (_name, text, mode, message) => {
    const files = { 'agent.sh': null };
    expect(
      await refusal(files, async (repository) =>
        text === null ? undefined : repository.write('agent.sh', text, mode),
      ),
    ).toContain(message);
  });

  test('with an agent program that is a folder', async () => {
    const text = await refusal({ 'agent.sh': null }, (repository) => repository.write('agent.sh/main', ''));
    expect(text).toMatch(/cannot run \.\/agent\.sh: it is a folder/);
  });

  test.each(['giro.toml', '.worktreeinclude'])('with a folder in the place of %s', async (name) => {
    const text = await refusal({ [name]: null }, (repository) => repository.write(`${name}/x`, ''));
    expect(text).toMatch(new RegExp(`^environment\n.*/${name} cannot be read: it is a folder\nput a file there`));
  });

  test('with an Issue or a SPEC.md that is no file: its work would be missing', async () => {
    const folder = `docs/specs/${spec}`;
    const text = await refusal({ [`${folder}/SPEC.md`]: null }, async (repository) => {
      const { path } = repository;
      await symlink('../elsewhere.md', join(path, folder, 'SPEC.md'));
      await symlink('01-a.md', join(path, folder, 'issues/02-b.md'));
      await symlink('01-a.md', join(path, folder, 'issues/latest.md'));
      await repository.write(`${folder}/issues/03-c.md/x`, '');
    });
    expect(text.split('\n').sort()).toEqual([
      `${folder}/SPEC.md:0: this is a symbolic link, which giro does not read (put what it leads to in its place)`,
      `${folder}/issues/02-b.md:0: this is a symbolic link, which giro does not read (put what it leads to in its place)`,
      `${folder}/issues/03-c.md:0: this is a folder, which giro does not read (move it away)`,
    ]);
  });

  test('with a Spec whose folder is a link', async () => {
    const text = await refusal({}, async ({ path }) => {
      await rename(join(path, 'docs/specs', spec), join(path, 'elsewhere'));
      await symlink('../../elsewhere', join(path, 'docs/specs', spec));
    });
    expect(text).toMatch(/^docs\/specs\/s1:0: this is a symbolic link/);
  });

  test('with an agent program that PATH does not have', async () => {
    expect(await refusal({ 'giro.toml': toml.replace('./agent.sh', 'no-such-agent') })).toContain(
      'names no-such-agent, which is not on PATH',
    );
  });

  test('for a Spec that does not exist; the nearest is named', async () => {
    const git = await project();
    const answer = await prepared(git, 's2' as typeof spec);
    expect(answer.ok ? '' : textOf(answer.failure)).toMatch(/there is no Spec "s2"[\s\S]*did you mean s1\?/);
  });

  test('with a planner that is not there', async () => {
    const planner = '\n[driver.planner]\nkind = "command"\nrun = ["./no-planner.sh"]\n[roles]\nplanner = "planner"\n';
    expect(await refusal({ 'giro.toml': toml + planner })).toContain('[driver.planner] names ./no-planner.sh');
  });

  test('for one that says done without a branch that could prove it', async () => {
    expect(await refusal({ [`docs/specs/${spec}/SPEC.md`]: specText('done') })).toMatch(
      /says done, but there is no branch giro\/s1[\s\S]*set state: draft/,
    );
  });

  test('with broken files: all of them are named, with their place', async () => {
    const text = await refusal({
      [`docs/specs/${spec}/SPEC.md`]: '---\nstate: active\n# never closed\n',
      [pathOf('01-a')]: '---\nstate: in-progress\nstate: ready\n---\n# A\n\nText.\n',
      [pathOf('02-b')]: '---\nstate: finished\n---\n# B\n\nText.\n',
    });
    for (const file of [`docs/specs/${spec}/SPEC.md`, pathOf('01-a'), pathOf('02-b')])
      expect(text).toMatch(new RegExp(`^${file}:\\d+: `, 'm'));
  });

  test('with a graph that is wrong: cycle, unknown, wontfix', async () => {
    const cycle = await refusal({
      [pathOf('01-a')]: issueText('ready', 'depends-on: [2]\n'),
      [pathOf('02-b')]: issueText('ready', 'depends-on: [1]\n'),
    });
    expect(cycle).toContain('the dependencies form a cycle: 01-a -> 02-b -> 01-a');
    expect(cycle).toContain(`${pathOf('01-a')}:3: `);
    expect(await refusal({ [pathOf('01-a')]: issueText('ready', 'depends-on: [01]\n') })).toContain(
      'depends on itself',
    );
    expect(await refusal({ [pathOf('01-a')]: issueText('ready', 'depends-on: [01-b]\n') })).toMatch(/01-b/);
    const wontfix = await refusal({
      [pathOf('01-a')]: issueText('wontfix'),
      [pathOf('02-b')]: issueText('ready', 'depends-on: [1]\n'),
    });
    expect(wontfix).toContain('02-b depends on 01-a, which is wontfix');
  });

  test('with two Issues of one number, or a gate that is not there', async () => {
    expect(await refusal({ [pathOf('1-b')]: issueText() })).toContain('number 1 is also used by');
    expect(await refusal({ [pathOf('01-a')]: issueText('ready', 'gates: [tset]\n') })).toMatch(
      /`tset`.*did you mean `test`\?/,
    );
  });

  test.each(['giro', 'giro-issue', 'giro/s1/old', 'giro-issue/s1'])(
    'with the branch %s in the way of its own',
    async (branch) => {
      const text = await refusal({}, (repository) => repository.git('branch', branch));
      expect(text).toContain(`the branch ${branch} is in the way`);
      expect(text).toContain(`rename it: git branch -m ${branch} `);
    },
  );
});
