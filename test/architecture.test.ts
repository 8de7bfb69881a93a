import { readdirSync, readFileSync } from 'node:fs';
import { isBuiltin } from 'node:module';
import path from 'node:path';
import ts from 'typescript';
import { describe, expect, test } from 'vitest';

/** One import line: what it names, and whether it is `import type`. */
interface Import {
  readonly source: string;
  readonly typeOnly: boolean;
  /** Passed on by `export … from`. */
  readonly exported?: true;
}

/** One row of the table in docs/architecture.md. */
interface Row {
  readonly own: ReadonlySet<string>;
  readonly ownTypes: ReadonlySet<string>;
  readonly packages: ReadonlySet<string>;
  readonly machine: boolean;
}

/** Modules of Node that see or change more than their arguments. */
const machineModules = new Set(
  [
    'fs',
    'fs/promises',
    'child_process',
    'process',
    'os',
    'net',
    'http',
    'https',
    'dns',
    'tty',
    'readline',
    'timers',
  ].map((name) => `node:${name}`),
);
const forbiddenNames = new Set(['utils', 'util', 'helpers', 'helper', 'common', 'types', 'manager', 'service']);

const root = path.dirname(import.meta.dirname);
const files = readdirSync(path.join(root, 'src'), { recursive: true, withFileTypes: true })
  .filter((entry) => entry.isFile())
  .map((entry) => path.relative(path.join(root, 'src'), path.join(entry.parentPath, entry.name)))
  .sort();
const imports = new Map(files.map((file) => [file, importsOf(readFileSync(path.join(root, 'src', file), 'utf8'))]));
const table = tableOf(readFileSync(path.join(root, 'docs', 'architecture.md'), 'utf8'));

describe('the table of docs/architecture.md', () => {
  test('has a row for every folder, and no row for what does not exist', () => {
    const folders = new Set(files.map((file) => ownerOf(file)));
    const rows = new Set([...table.keys()].filter((name) => !name.includes('/')));
    expect([...folders].filter((folder) => !rows.has(folder))).toEqual([]);
    expect([...rows].filter((row) => !folders.has(row))).toEqual([]);
  });

  test('allows every import of src', () => {
    const refused = [...imports].flatMap(([file, list]) =>
      list.filter((one) => !isAllowed(file, one, table)).map(({ source }) => `${file} imports ${source}`),
    );
    expect(refused).toEqual([]);
  });

  test.each([
    ['scheduler/tick.ts', '../worktree/git.js', false],
    ['scheduler/tick.ts', '../platform/clock.js', false],
    ['scheduler/tick.ts', 'p-queue', true],
    ['loop/issue-loop.ts', '../cli/main.js', false],
    ['loop/issue-loop.ts', 'node:fs/promises', false],
    ['loop/issue-loop.ts', 'node:path', true],
    ['worktree/git.ts', 'node:child_process', true],
    ['worktree/lane.ts', 'node:child_process', false],
    ['tui/board.tsx', 'react/jsx-runtime', true],
    ['report/plain.ts', 'react', false],
    ['report/plain.ts', '../platform/text.js', true],
    ['report/plain.ts', '../platform/files.js', false],
    ['issue.ts', './platform/clock.js', false],
    ['cli/version.ts', '../../package.json', true],
    ['cli/version.ts', '../../scripts/notices.js', false],
    ['report/plain.ts', '../../package.json', false],
  ])('says of %s importing %s: %s', (file, source, allowed) => {
    expect(isAllowed(file, { source, typeOnly: false }, table)).toBe(allowed);
  });

  test('lets a type through where only the type is wanted', () => {
    expect(isAllowed('scheduler/tick.ts', { source: '../platform/clock.js', typeOnly: true }, table)).toBe(true);
    expect(isAllowed('worktree/worktrees.ts', { source: '../store/lock.js', typeOnly: true }, table)).toBe(true);
    expect(isAllowed('worktree/worktrees.ts', { source: '../store/refs.js', typeOnly: true }, table)).toBe(false);
  });
});

describe('the shape of src', () => {
  test('nothing outside cli imports cli', () => {
    const importers = [...imports].filter(
      ([file, list]) =>
        ownerOf(file) !== 'cli' && list.some(({ source }) => ownerOf(target(file, source) ?? '') === 'cli'),
    );
    expect(importers.map(([file]) => file)).toEqual([]);
  });

  test('imports never go in a circle, not even types', () => {
    expect(findCycle()).toEqual([]);
  });

  test('has one folder level and file names in kebab-case that say what is inside', () => {
    const odd = files.filter((file) => {
      const parts = file.replace(/\.tsx?$/, '').split(path.sep);
      const named = parts.every((part) => /^[a-z0-9]+(?:-[a-z0-9]+)*$/.test(part) && !forbiddenNames.has(part));
      return parts.length > 2 || !named || !/\.tsx?$/.test(file);
    });
    expect(odd).toEqual([]);
  });

  test('has no barrels: what is imported is the file that holds it', () => {
    const barrels = [...imports].filter(
      ([file, list]) => path.posix.basename(nameOf(file)) === 'index' || list.some(({ exported }) => exported),
    );
    expect(barrels.map(([file]) => file)).toEqual([]);
  });

  test('the parser of this test sees every kind of import', () => {
    const source = `
      import type { A } from './a.js';
      import b, { type C } from './b.js';
      import './d.js';
      export { e } from './e.js';
      export type { F } from './f.js';
      const g = await import('./g.js');
      type H = import('./h.js').H;`;
    expect(importsOf(source)).toEqual([
      { source: './a.js', typeOnly: true },
      { source: './b.js', typeOnly: false },
      { source: './d.js', typeOnly: false },
      { source: './e.js', typeOnly: false, exported: true },
      { source: './f.js', typeOnly: true, exported: true },
      { source: './g.js', typeOnly: false },
      { source: './h.js', typeOnly: true },
    ]);
  });
});

function importsOf(text: string): readonly Import[] {
  const found: Import[] = [];
  const visit = (node: ts.Node): void => {
    if (ts.isImportDeclaration(node)) {
      add(node.moduleSpecifier, node.importClause?.phaseModifier === ts.SyntaxKind.TypeKeyword);
    } else if (ts.isExportDeclaration(node) && node.moduleSpecifier !== undefined) {
      add(node.moduleSpecifier, node.isTypeOnly, { exported: true });
    } else if (ts.isCallExpression(node) && node.expression.kind === ts.SyntaxKind.ImportKeyword) {
      add(node.arguments[0], false);
    } else if (ts.isImportTypeNode(node) && ts.isLiteralTypeNode(node.argument)) {
      add(node.argument.literal, true);
    }
    ts.forEachChild(node, visit);
  };
  const add = (specifier: ts.Node | undefined, typeOnly: boolean, more?: { readonly exported: true }): void => {
    // A computed specifier cannot be checked, so it is never allowed.
    const source = specifier !== undefined && ts.isStringLiteral(specifier) ? specifier.text : '(computed)';
    found.push({ source, typeOnly, ...more });
  };
  visit(ts.createSourceFile('file.tsx', text, ts.ScriptTarget.Latest, true, ts.ScriptKind.TSX));
  return found;
}

function tableOf(markdown: string): ReadonlyMap<string, Row> {
  const lines = markdown.split('\n');
  const start = lines.findIndex((line) => line.startsWith('| From |'));
  const rows = lines.slice(start + 2, lines.indexOf('', start)).map((line) => line.split('|').slice(1, -1));
  return new Map(
    rows.map(([from = '', own = '', packages = '', machine = '']) => [
      names(from)[0] ?? '',
      {
        own: new Set(names(own.replaceAll(/`[^`]*` \*\(type\)\*/g, ''))),
        ownTypes: new Set([...own.matchAll(/`([^`]*)` \*\(type\)\*/g)].map(([, name = '']) => name)),
        packages: new Set(names(packages)),
        machine: machine.trim() === 'yes',
      },
    ]),
  );
}

function names(cell: string): readonly string[] {
  return [...cell.matchAll(/`([^`]*)`/g)].map(([, name = '']) => name);
}

function isAllowed(file: string, { source, typeOnly }: Import, rows: ReadonlyMap<string, Row>): boolean {
  const owner = ownerOf(file);
  const row = rows.get(nameOf(file)) ?? rows.get(owner);
  if (row === undefined) return false;
  if (isBuiltin(source)) return source.startsWith('node:') && (row.machine || !machineModules.has(source));
  const other = target(file, source);
  if (other === undefined) return row.packages.has(packageOf(source));
  // Outside of src there is one file to import, by its own name.
  if (other.startsWith('../')) return row.own.has(other.slice('../'.length));
  if (ownerOf(other) === owner) return true;
  const allowed = typeOnly ? new Set([...row.own, ...row.ownTypes]) : row.own;
  return allowed.has(ownerOf(other)) || allowed.has(nameOf(other));
}

/** `worktree/git.ts` is `worktree/git`. */
function nameOf(file: string): string {
  return file.replace(/\.[jt]sx?$/, '');
}

/** The folder, or `root` for the vocabulary. */
function ownerOf(file: string): string {
  const [folder, ...rest] = file.split('/');
  return rest.length === 0 || folder === undefined ? 'root' : folder;
}

/** The file inside src that a relative import means; undefined for a package. */
function target(file: string, source: string): string | undefined {
  return source.startsWith('.') ? path.posix.join(path.posix.dirname(file), source) : undefined;
}

function packageOf(source: string): string {
  return source
    .split('/')
    .slice(0, source.startsWith('@') ? 2 : 1)
    .join('/');
}

function findCycle(): readonly string[] {
  const byName = new Map(files.map((file) => [nameOf(file), file]));
  const finished = new Set<string>();
  const walk = (file: string, trail: readonly string[]): readonly string[] => {
    if (trail.includes(file)) return [...trail.slice(trail.indexOf(file)), file];
    if (finished.has(file)) return [];
    for (const { source } of imports.get(file) ?? []) {
      const next = byName.get(nameOf(target(file, source) ?? ''));
      const cycle = next === undefined ? [] : walk(next, [...trail, file]);
      if (cycle.length > 0) return cycle;
    }
    finished.add(file);
    return [];
  };
  return files.map((file) => walk(file, [])).find((cycle) => cycle.length > 0) ?? [];
}
