import { execFile } from 'node:child_process';
import { lstatSync, readdirSync } from 'node:fs';
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';
import { makeProject, type Project } from '../rig/giro.js';
import { temporaryFolder } from '../rig/temp.js';

const exec = promisify(execFile);

interface Told {
  readonly problems: number;
  readonly checks: readonly {
    readonly area: string;
    readonly name: string;
    readonly status: string;
    readonly detail: string;
  }[];
}

async function doctor(project: Project, ...args: readonly string[]): Promise<Told & { readonly code: number | null }> {
  const run = await project.giro(['doctor', '--json', ...args]);
  return { ...(JSON.parse(run.stdout) as Told), code: run.code };
}

/** Every file and folder, and when it was changed. */
function picture(folder: string): readonly string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .map((name) => `${name} ${String(lstatSync(join(folder, name), { bigint: true }).ctimeNs)}`)
    .sort();
}

describe('giro doctor', () => {
  test('finds nothing wrong in a project that works, names its programs, and writes nothing', async () => {
    const project = await makeProject({ issues: { '01-a': {} }, verify: 'test = "git --version"' });
    const before = picture(project.path);
    const home = picture(project.home);
    const told = await doctor(project);
    expect(told).toMatchObject({ code: 0, problems: 0 });
    const programs = told.checks
      .filter(({ area }) => area === 'giro.toml')
      .map(({ name, detail }) => `${name}: ${detail}`);
    expect(programs).toEqual([expect.stringMatching(/^file: /), 'driver command: ./agent.sh', 'gate test: git']);
    expect(picture(project.path)).toEqual(before);
    expect(picture(project.home)).toEqual(home);
    const text = await project.giro(['doctor']);
    expect(text.code).toBe(0);
    expect(text.stdout).toContain('nothing is a problem');
    expect(text.stderr).toBe('');
  });

  test('exits 1 for a gate whose program is missing', async () => {
    const project = await makeProject({ issues: {}, verify: 'test = "CI=1 no-such-program --all"' });
    const told = await doctor(project);
    expect(told).toMatchObject({ code: 1, problems: 1 });
    expect(told.checks).toContainEqual(expect.objectContaining({ name: 'gate test', status: 'problem' }));
  });

  test.each([
    ['mistakes', '[limits]\nprocesses = 1\n', /no driver is configured.*, and 2 more$/],
    ['text that is no TOML', '[limits', /TOML/],
  ])('exits 1 for a giro.toml with %s', async (_name, text, detail) => {
    const project = await makeProject({ issues: {} });
    await writeFile(join(project.path, 'giro.toml'), text);
    const told = await doctor(project);
    expect(told.code).toBe(1);
    expect(told.checks).toContainEqual(
      expect.objectContaining({
        area: 'giro.toml',
        status: 'problem',
        detail: expect.stringMatching(detail) as string,
      }),
    );
  });

  test('sees what is special about a repository', async () => {
    const project = await makeProject({ issues: {} });
    await writeFile(join(project.path, '.gitmodules'), '');
    await writeFile(join(project.path, '.gitattributes'), '*.bin filter=lfs diff=lfs merge=lfs -text\n');
    await writeFile(join(project.path, '.git/shallow'), `${(await project.git('rev-parse', 'HEAD')).trim()}\n`);
    await project.git('branch', 'giro');
    const told = await doctor(project);
    const odd = told.checks.filter(({ area, status }) => area === 'repository' && status !== 'ok');
    expect(odd.map(({ name, status }) => `${name} ${status}`)).toEqual([
      'branches problem',
      'history note',
      'submodules note',
      'LFS note',
    ]);
    expect(told.code).toBe(1);
  });

  test('works outside of a repository, in a bare one, and in one without a commit', async () => {
    const project = await makeProject({ issues: {} });
    const { path } = await temporaryFolder();
    expect(await doctor(project, '-C', path)).toMatchObject({ code: 0 });
    await exec('git', ['init', '--quiet', path]);
    const empty = await doctor(project, '-C', path);
    expect(empty.checks).toContainEqual(
      expect.objectContaining({ area: 'repository', status: 'problem', detail: 'this repository has no commit yet' }),
    );
    const nowhere = await doctor(project, '-C', join(path, 'nowhere'));
    expect(nowhere).toMatchObject({ code: 1, problems: 1 });
    expect(nowhere.checks).toContainEqual(expect.objectContaining({ name: 'git', status: 'ok' }));
    const bare = join(path, 'bare.git');
    await exec('git', ['clone', '--quiet', '--bare', project.path, bare]);
    const told = await doctor(project, '-C', bare);
    expect(told.code).toBe(1);
    expect(told.checks).toContainEqual(expect.objectContaining({ name: 'checkout', status: 'problem' }));
  });

  test('works without a giro.toml', async () => {
    const project = await makeProject({ issues: {} });
    await rm(join(project.path, 'giro.toml'));
    expect(await doctor(project)).toMatchObject({ code: 0 });
  });
});
