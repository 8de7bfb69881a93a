/** What a project says about itself: its test command and its setup. Pure; `init.ts` reads the files. */

/** The parts of a project that `giro init` looks at, read once. */
export interface Project {
  /** Name of the top folder, or what package.json calls it. */
  readonly name: string;
  /** Names in the top folder. */
  readonly names: ReadonlySet<string>;
  /** Texts of `filesOfInterest` that exist, by path. */
  readonly files: ReadonlyMap<string, string>;
  /** Names in `tests/` and `test/`. */
  readonly testNames: readonly string[];
  /** Hooks that git or a hook manager would run, samples left out. */
  readonly hooks: readonly HookFile[];
  /** Specs that are there already, by slug. */
  readonly specs: readonly string[];
  /** False: the folder is in no repository yet. */
  readonly isRepository: boolean;
  readonly hasCommit: boolean;
  /** Whether the program `claude` is on the PATH. */
  readonly hasClaude: boolean;
}

/** One hook as a file. */
export interface HookFile {
  /** As a person would type it, such as `.husky/pre-commit`. */
  readonly path: string;
  readonly text: string;
  /** Whether it is among the files of a commit, so that a gate can run it. */
  readonly tracked: boolean;
}

/** A command, and the file that speaks for it. */
export interface Found {
  readonly command: string;
  readonly from: string;
}

/** Files whose text is read, where they exist. */
export const filesOfInterest = [
  'package.json',
  'Makefile',
  'makefile',
  'GNUmakefile',
  'pyproject.toml',
  'pytest.ini',
  'setup.cfg',
  'tox.ini',
  'requirements.txt',
  'requirements-dev.txt',
] as const;

/** The programs that install and run JavaScript packages. */
export type PackageManager = 'npm' | 'pnpm' | 'yarn' | 'bun';

/** Lists every command that runs the project's tests; the first one speaks for the whole project best. */
export function detectTests(project: Project): readonly Found[] {
  return [scriptTest(project), cargoTest(project), goTest(project), pythonTest(project), makeTest(project)].filter(
    (found) => found !== undefined,
  );
}

/** Finds the command that makes a fresh checkout ready for its tests. */
export function detectSetup(project: Project): Found | undefined {
  const has = (name: string): boolean => project.names.has(name);
  const lock = jsLocks.find(({ file }) => has(file));
  if (has('package.json') && lock !== undefined) {
    return { command: installCommand(lock.manager, isModernYarn(project)), from: lock.file };
  }
  if (has('uv.lock')) return { command: 'uv sync --locked', from: 'uv.lock' };
  if (has('poetry.lock')) return { command: 'poetry install --no-interaction', from: 'poetry.lock' };
  return undefined;
}

const jsLocks: readonly { readonly file: string; readonly manager: PackageManager }[] = [
  { file: 'pnpm-lock.yaml', manager: 'pnpm' },
  { file: 'yarn.lock', manager: 'yarn' },
  { file: 'bun.lock', manager: 'bun' },
  { file: 'bun.lockb', manager: 'bun' },
  { file: 'package-lock.json', manager: 'npm' },
  { file: 'npm-shrinkwrap.json', manager: 'npm' },
];

function scriptTest(project: Project): Found | undefined {
  const script = scriptsOf(project).get('test')?.trim() ?? '';
  // What `npm init` writes is a placeholder that fails, not a test.
  if (script === '' || /no test specified/i.test(script)) return undefined;
  const manager = packageManager(project);
  // `bun test` would start bun's own runner instead of the script.
  return { command: manager === 'bun' ? 'bun run test' : `${manager} test`, from: 'package.json' };
}

function cargoTest(project: Project): Found | undefined {
  return project.names.has('Cargo.toml') ? { command: 'cargo test', from: 'Cargo.toml' } : undefined;
}

function goTest(project: Project): Found | undefined {
  return project.names.has('go.mod') ? { command: 'go test ./...', from: 'go.mod' } : undefined;
}

/** `python3 -m pytest` and not `pytest`: the former imports the code of the folder it runs in. */
function pythonTest(project: Project): Found | undefined {
  const from = pytestEvidence(project);
  if (from === undefined) return undefined;
  if (project.names.has('uv.lock')) return { command: 'uv run pytest', from };
  if (project.names.has('poetry.lock')) return { command: 'poetry run pytest', from };
  return { command: 'python3 -m pytest', from };
}

function pytestEvidence(project: Project): string | undefined {
  const mentions = (file: string, pattern: RegExp): boolean => pattern.test(project.files.get(file) ?? '');
  if (project.names.has('pytest.ini')) return 'pytest.ini';
  if (mentions('pyproject.toml', /^\[tool\.pytest|^\s*["']?pytest\b/m)) return 'pyproject.toml';
  if (mentions('setup.cfg', /^\[tool:pytest\]/m)) return 'setup.cfg';
  if (mentions('tox.ini', /^\[pytest\]/m)) return 'tox.ini';
  const requirements = ['requirements-dev.txt', 'requirements.txt'].find((file) => mentions(file, /^pytest\b/m));
  if (requirements !== undefined) return requirements;
  if (project.names.has('conftest.py')) return 'conftest.py';
  return project.testNames.find((name) => /(?:^|\/)(?:test_.*|.*_test|conftest)\.py$/.test(name));
}

function makeTest(project: Project): Found | undefined {
  const from = ['GNUmakefile', 'makefile', 'Makefile'].find((file) =>
    /^test\s*:(?!=)/m.test(project.files.get(file) ?? ''),
  );
  return from === undefined ? undefined : { command: 'make test', from };
}

/** Reads `scripts` of package.json; empty when there is none or it is not readable. */
export function scriptsOf(project: Project): ReadonlyMap<string, string> {
  const { scripts } = manifestOf(project);
  const entries = typeof scripts === 'object' && scripts !== null ? Object.entries(scripts) : [];
  return new Map(entries.filter((entry): entry is [string, string] => typeof entry[1] === 'string'));
}

function manifestOf(project: Project): Readonly<Record<string, unknown>> {
  try {
    const manifest: unknown = JSON.parse((project.files.get('package.json') ?? '{}').replace(/^\uFEFF/, ''));
    return typeof manifest === 'object' && manifest !== null ? { ...manifest } : {};
  } catch {
    // A package.json that is not JSON says nothing; npm itself will say what is wrong with it.
    return {};
  }
}

/** The field `packageManager` decides, then the lock file. */
export function packageManager(project: Project): PackageManager {
  const { packageManager: declared } = manifestOf(project);
  const named = typeof declared === 'string' ? declared.split('@')[0] : undefined;
  return (
    jsLocks.map(({ manager }) => manager).find((manager) => manager === named) ??
    jsLocks.find(({ file }) => project.names.has(file))?.manager ??
    'npm'
  );
}

function isModernYarn(project: Project): boolean {
  const { packageManager: declared } = manifestOf(project);
  return project.names.has('.yarnrc.yml') || (typeof declared === 'string' && /^yarn@[^01]/.test(declared));
}

/** What fills `node_modules` in a folder of these names: by its lock file, where there is one. */
export function installOf(names: ReadonlySet<string>): string {
  const lock = jsLocks.find(({ file }) => names.has(file));
  return lock === undefined ? 'npm install' : installCommand(lock.manager, names.has('.yarnrc.yml'));
}

function installCommand(manager: PackageManager, modernYarn: boolean): string {
  switch (manager) {
    case 'npm':
      return 'npm ci';
    case 'pnpm':
    case 'bun':
      return `${manager} install --frozen-lockfile`;
    case 'yarn':
      return `yarn install ${modernYarn ? '--immutable' : '--frozen-lockfile'}`;
  }
}
