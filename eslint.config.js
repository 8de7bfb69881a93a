import js from '@eslint/js';
import { defineConfig, globalIgnores } from 'eslint/config';
import tseslint from 'typescript-eslint';
import { assertionsOnlyInParse } from './scripts/lint-rules.js';

/** Only platform/, worktree/git.ts and cli/ touch the machine (STYLE 5); everything else is handed what it needs. */
const machine = ['src/platform/**', 'src/worktree/git.ts', 'src/cli/**'];

const handedIn = 'is handed in: see docs/architecture.md';

/** What the style guide rules out everywhere in src. */
const syntax = [
  { selector: 'ExportDefaultDeclaration', message: 'Export by name.' },
  { selector: 'ExportAllDeclaration', message: 'List what is exported, one by one.' },
  { selector: 'TSEnumDeclaration', message: 'Use a union of strings.' },
];

export default defineConfig(
  globalIgnores(['dist/', 'dist-bench/', 'coverage/']),
  { linterOptions: { reportUnusedDisableDirectives: 'error' } },
  js.configs.recommended,
  {
    files: ['**/*.js', '**/*.mjs'],
    extends: [tseslint.configs.strict],
    languageOptions: {
      globals: { process: false, console: false, URL: false, setTimeout: false, clearTimeout: false },
    },
  },
  {
    files: ['**/*.ts', '**/*.tsx'],
    extends: [tseslint.configs.strictTypeChecked],
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
    rules: {
      '@typescript-eslint/consistent-type-imports': 'error',
      '@typescript-eslint/switch-exhaustiveness-check': [
        'error',
        // `default: return unreachable(x)` is wanted, and must not hide a missing case.
        { considerDefaultExhaustiveForUnions: false, allowDefaultCaseForExhaustiveSwitch: true },
      ],
      '@typescript-eslint/restrict-template-expressions': ['error', { allowNumber: true }],
      '@typescript-eslint/no-confusing-void-expression': [
        'error',
        { ignoreArrowShorthand: true, ignoreVoidReturningFunctions: true },
      ],
      // Cutting a text into code points is what a terminal needs.
      '@typescript-eslint/no-misused-spread': 'off',
      // `Result<Policy, Failure>` says what can go wrong, also where that is the default.
      '@typescript-eslint/no-unnecessary-type-arguments': 'off',
      '@typescript-eslint/prefer-readonly': 'error',
      'no-console': 'error',
      // Control characters are what giro looks for in text that it prints.
      'no-control-regex': 'off',
      eqeqeq: 'error',
    },
  },
  {
    files: ['src/**'],
    plugins: { giro: { rules: { 'assertions-only-in-parse': assertionsOnlyInParse } } },
    rules: {
      'giro/assertions-only-in-parse': 'error',
      'max-params': ['error', 3],
      'max-lines': ['error', { max: 400, skipBlankLines: true, skipComments: true }],
      'max-lines-per-function': ['error', { max: 60, skipBlankLines: true, skipComments: true }],
      'no-restricted-syntax': ['error', ...syntax],
    },
  },
  // The one reducer is read as a table, a case for each event.
  { files: ['src/state.ts'], rules: { 'max-lines-per-function': 'off' } },
  {
    files: ['src/**'],
    ignores: machine,
    rules: {
      'no-restricted-globals': [
        'error',
        ...['setTimeout', 'setInterval', 'setImmediate', 'performance', 'fetch'].map((name) => ({
          name,
          message: `Time and network: ${handedIn}.`,
        })),
      ],
      'no-restricted-properties': [
        'error',
        ...['env', 'cwd', 'chdir', 'exit', 'exitCode', 'kill', 'on', 'once'].map((property) => ({
          object: 'process',
          property,
          message: `The process ${handedIn}.`,
        })),
        { object: 'Date', property: 'now', message: `Time ${handedIn}.` },
        { object: 'Math', property: 'random', message: `Chance ${handedIn}.` },
      ],
      'no-restricted-syntax': [
        'error',
        ...syntax,
        { selector: "NewExpression[callee.name='Date'][arguments.length=0]", message: `Time ${handedIn}.` },
      ],
      'no-restricted-imports': [
        'error',
        ...['fs', 'fs/promises', 'child_process', 'process', 'timers', 'timers/promises'].flatMap((name) =>
          [name, `node:${name}`].map((source) => ({ name: source, message: `The machine ${handedIn}.` })),
        ),
      ],
    },
  },
  {
    // Fakes keep the shape of what they stand for, and a test may know more than the types do.
    files: ['test/**', 'bench/**'],
    rules: {
      '@typescript-eslint/no-non-null-assertion': 'off',
      '@typescript-eslint/require-await': 'off',
      '@typescript-eslint/no-empty-function': 'off',
      '@typescript-eslint/no-dynamic-delete': 'off',
      '@typescript-eslint/unbound-method': 'off',
      // Vitest's own matchers (`expect.any`) are typed as any.
      '@typescript-eslint/no-unsafe-assignment': 'off',
    },
  },
  {
    // Programs that talk to the person who ran them.
    files: ['bench/**', 'scripts/**', '*.config.ts'],
    rules: { 'no-console': 'off' },
  },
);
