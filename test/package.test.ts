import { execFile } from 'node:child_process';
import { cp, mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { packagesOf, renderNotices } from '../scripts/notices.js';
import { temporaryFolder, type TemporaryFolder } from './rig/temp.js';

const run = promisify(execFile);
const root = path.dirname(import.meta.dirname);

describe('the published package', () => {
  let tarball: Tarball;
  let folder: TemporaryFolder;

  beforeAll(async () => {
    folder = await temporaryFolder();
    tarball = await pack(folder.path);
  });
  afterAll(() => folder.remove());

  test('holds the program, its documents and the notices, and nothing else', () => {
    const expected =
      /^(?:package\.json|bin\/giro\.js|dist\/[\w-]+\.js|README\.md|CHANGELOG\.md|LICENSE|THIRD-PARTY-NOTICES\.md)$/;
    expect(tarball.files.filter((file) => !expected.test(file))).toEqual([]);
    for (const file of ['bin/giro.js', 'dist/main.js', 'LICENSE', 'THIRD-PARTY-NOTICES.md', 'README.md']) {
      expect(tarball.files).toContain(file);
    }
  });

  test('installs into an empty folder without dependencies or scripts, and runs from there', async () => {
    const { path: home } = await temporaryFolder();
    await writeFile(path.join(home, 'package.json'), '{}');
    // Offline and without a cache: whatever it would need from a registry fails.
    const flags = ['--offline', '--no-audit', '--no-fund', '--cache', path.join(home, 'cache')];
    const { stdout, stderr } = await run('npm', ['install', tarball.path, ...flags], { cwd: home });
    expect(`${stdout}${stderr}`).not.toMatch(/warn/i);
    const installed = (await readdir(path.join(home, 'node_modules'))).filter((name) => !name.startsWith('.'));
    expect(installed).toEqual(['giro']);
    const manifest = parseManifest(await readFile(path.join(home, 'node_modules/giro/package.json'), 'utf8'));
    expect(manifest.dependencies).toBeUndefined();
    expect(manifest.optionalDependencies).toBeUndefined();
    expect(Object.keys(manifest.scripts).filter((name) => /^(?:pre|post)?(?:install|prepare)$/.test(name))).toEqual([]);
    const version = await run(path.join(home, 'node_modules/.bin/giro'), ['--version'], { cwd: home });
    expect(version.stdout.trim()).toBe(manifest.version);
    const init = await run(path.join(home, 'node_modules/.bin/giro'), ['init'], { cwd: home });
    expect(init.stdout).toMatch(/wrote +giro\.toml[\s\S]*next +giro implement example/);
    const env = { ...process.env, TMPDIR: home };
    const demo = await run(path.join(home, 'node_modules/.bin/giro'), ['demo', '--fast', '--plain'], {
      cwd: home,
      env,
    });
    expect(demo.stdout).toMatch(/proof: 8 of 8 Issues integrated/);
  });

  test('splits off what a command may not need: ink and react are not in what every start loads', async () => {
    const loaded = await eagerlyLoaded('main.js');
    const code = await Promise.all([...loaded].map((file) => readFile(path.join(root, 'dist', file), 'utf8')));
    expect(code.join('\n')).not.toMatch(/react\.(?:transitional\.)?element|reconciler/);
  });

  test('is narrow text, of which V8 keeps one byte a character', async () => {
    const files = (await readdir(path.join(root, 'dist'))).filter((file) => file.endsWith('.js'));
    const texts = await Promise.all(files.map((file) => readFile(path.join(root, 'dist', file), 'utf8')));
    expect(files.filter((_, at) => /[^\u0000-\u00ff]/.test(texts[at] ?? ''))).toEqual([]);
  });
});

describe('third-party notices', () => {
  test('name every package that src imports, with the text of its licence', async () => {
    const notices = await readFile(path.join(root, 'THIRD-PARTY-NOTICES.md'), 'utf8');
    const missing = [...(await importedPackages())].filter((name) => !new RegExp(`^## ${name} \\d`, 'm').test(notices));
    expect(missing).toEqual([]);
    const sections = notices.split(/^## /m).slice(1);
    expect(sections.filter((section) => !/permission|redistribution|apache license/i.test(section))).toEqual([]);
    expect(notices).not.toMatch(/^(?:A?L?GPL|EPL|MPL|SSPL)\b/m);
  });

  test('name a package once, by its innermost folder, and no code of giro itself', async () => {
    const { path: folder } = await temporaryFolder();
    await writePackage(folder, 'outer', { license: 'MIT' }, 'Permission is granted');
    await writePackage(folder, 'outer/node_modules/@scope/inner', { license: 'ISC' }, 'Permission too');
    const modules = path.join(folder, 'node_modules');
    const packages = await packagesOf([
      `${modules}/outer/a.js`,
      `${modules}/outer/lib/b.js`,
      `\0${modules}/outer/node_modules/@scope/inner/c.js?commonjs`,
      `${folder}/src/main.ts`,
      '\0rolldown/runtime.js',
    ]);
    expect(packages.map(({ name }) => name)).toEqual(['@scope/inner', 'outer']);
    expect(renderNotices(packages)).toContain('## outer 1.0.0\n\nMIT');
  });

  test.each([['GPL-3.0'], ['EPL-2.0'], ['AGPL-3.0-only'], ['MPL-2.0'], ['UNLICENSED'], [undefined]])(
    'stop the build at a package under %s',
    async (license) => {
      const { path: folder } = await temporaryFolder();
      await writePackage(folder, 'odd', { license }, 'text');
      await expect(packagesOf([path.join(folder, 'node_modules/odd/index.js')])).rejects.toThrow(
        /odd@1\.0\.0.*licence/,
      );
    },
  );

  test('bring the text for a package that declares MIT and ships none', async () => {
    const { path: folder } = await temporaryFolder();
    await writePackage(folder, 'bare', { license: 'MIT', author: { name: 'Ada' } });
    const [bare] = await packagesOf([path.join(folder, 'node_modules/bare/index.js')]);
    expect(bare?.text).toContain('Copyright (c) Ada');
  });
});

describe('bin/giro.js', () => {
  test('says how to build where the program is missing', async () => {
    const { path: folder } = await temporaryFolder();
    await cp(path.join(root, 'bin'), path.join(folder, 'bin'), { recursive: true });
    await writeFile(path.join(folder, 'package.json'), '{"type":"module"}');
    const ended = await outcome(path.join(folder, 'bin/giro.js'), []);
    expect(ended.code).toBe(1);
    expect(ended.stderr).toContain('giro is not built');
    expect(ended.stderr).toContain('npm start');
  });

  test.each([
    ['18.20.4', false],
    ['20.18.1', false],
    ['20.19.0', true],
    ['22.0.0', true],
    ['100.0.0', true],
  ])('looks at the version of Node before anything else: %s', async (version, accepted) => {
    const pretend = `Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '${version}' } })`;
    const ended = await outcome(
      path.join(root, 'bin/giro.js'),
      ['--version'],
      ['--import', `data:text/javascript,${encodeURIComponent(pretend)}`],
    );
    expect(ended.code).toBe(accepted ? 0 : 1);
    expect(ended.stderr.includes('giro needs Node 20.19 or newer')).toBe(!accepted);
  });
});

interface Tarball {
  readonly path: string;
  readonly files: readonly string[];
}

/** Packs what `npm test` has just built. */
async function pack(folder: string): Promise<Tarball> {
  const { stdout } = await run('npm', ['pack', '--json', '--ignore-scripts', '--pack-destination', folder], {
    cwd: root,
  });
  const [packed] = JSON.parse(stdout) as { filename: string; files: { path: string }[] }[];
  if (packed === undefined) throw new Error(`npm pack made nothing: ${stdout}`);
  return {
    path: path.join(folder, packed.filename),
    files: packed.files.map((file) => file.path),
  };
}

interface Manifest {
  readonly version: string;
  readonly scripts: Readonly<Record<string, string>>;
  readonly dependencies?: unknown;
  readonly optionalDependencies?: unknown;
}

function parseManifest(json: string): Manifest {
  return JSON.parse(json) as Manifest;
}

/** A chunk and everything it imports statically. */
async function eagerlyLoaded(file: string, seen = new Set<string>()): Promise<ReadonlySet<string>> {
  if (seen.has(file)) return seen;
  seen.add(file);
  const code = await readFile(path.join(root, 'dist', file), 'utf8');
  for (const [, next = ''] of code.matchAll(/(?:\bfrom|\bimport)\s*["']\.\/([\w-]+\.js)["']/g))
    await eagerlyLoaded(next, seen);
  return seen;
}

async function importedPackages(): Promise<ReadonlySet<string>> {
  const entries = await readdir(path.join(root, 'src'), { recursive: true, withFileTypes: true });
  const sources = entries.filter((entry) => entry.isFile()).map((entry) => path.join(entry.parentPath, entry.name));
  const found = new Set<string>();
  for (const source of sources) {
    const code = await readFile(source, 'utf8');
    for (const [, name = ''] of code.matchAll(/^(?:import (?!type )[^;]*?|\} )from '((?:@[\w-]+\/)?[\w-]+)/gm)) {
      if (!name.startsWith('node')) found.add(name);
    }
  }
  return found;
}

async function writePackage(
  folder: string,
  name: string,
  manifest: Readonly<Record<string, unknown>>,
  license?: string,
): Promise<void> {
  const home = path.join(folder, 'node_modules', name);
  await mkdir(home, { recursive: true });
  const short = name.split('node_modules/').at(-1);
  await writeFile(path.join(home, 'package.json'), JSON.stringify({ name: short, version: '1.0.0', ...manifest }));
  if (license !== undefined) await writeFile(path.join(home, 'LICENSE'), license);
}

/** How a Node program ends. */
async function outcome(
  program: string,
  args: readonly string[],
  nodeFlags: readonly string[] = [],
): Promise<{ readonly code: number; readonly stderr: string }> {
  return new Promise((resolve) => {
    execFile(process.execPath, [...nodeFlags, program, ...args], (error, _stdout, stderr) => {
      resolve({ code: typeof error?.code === 'number' ? error.code : error === null ? 0 : -1, stderr });
    });
  });
}
