/** The made-up project of `giro demo`: a small library with real tests, a Spec of eight Issues, and what its workers do. */

/** Files of the project before anything is asked of it. */
export const demoFiles: Readonly<Record<string, string>> = {
  'package.json': `{
  "name": "tally",
  "version": "1.0.0",
  "type": "module",
  "scripts": { "test": "node --test" }
}
`,
  'README.md': `# tally

Adds up what things cost.

## Features

- amounts in cents, never in floating point
`,
  'src/money.js': `/** Reads an amount such as "12.50" as whole cents. */
export function parse(text) {
  const match = /^(\\d+)(?:\\.(\\d{2}))?$/.exec(text);
  if (!match) throw new RangeError(\`not an amount: \${text}\`);
  return Number(match[1]) * 100 + Number(match[2] ?? 0);
}

/** Writes whole cents as an amount such as "12.50". */
export function format(cents) {
  return \`\${Math.trunc(cents / 100)}.\${String(cents % 100).padStart(2, '0')}\`;
}
`,
  'test/money.test.js': `import assert from 'node:assert/strict';
import { test } from 'node:test';
import { format, parse } from '../src/money.js';

test('reads and writes amounts', () => {
  assert.equal(parse('12.50'), 1250);
  assert.equal(format(1250), '12.50');
  assert.throws(() => parse('twelve'), RangeError);
});
`,
};

const issue = (parts: { readonly title: string; readonly dependsOn?: string; readonly body: string }): string =>
  `---
state: ready
${parts.dependsOn === undefined ? '' : `depends-on: [${parts.dependsOn}]\n`}---
# ${parts.title}

${parts.body}
`;

/** The Spec, and the settings that play it. */
export const demoSpec: Readonly<Record<string, string>> = {
  'docs/specs/tally/SPEC.md': `---
state: draft
---
# From amounts to a monthly report

Grow the library from single amounts to a report per category, with alerts and a command line. Every Issue brings its tests.
`,
  'docs/specs/tally/issues/01-ledger.md': issue({
    title: 'A ledger of entries',
    body: 'Add `src/ledger.js`: a class `Ledger` with `add(name, cents, category)` and `entries`, and a function `total(entries)`.\nMention it in the README.',
  }),
  'docs/specs/tally/issues/02-categories.md': issue({
    title: 'Categories with a default',
    body: 'Add `src/categories.js`: `normalise(name)` gives lower-case names without surrounding space, and "other" for nothing.',
  }),
  'docs/specs/tally/issues/03-rates.md': issue({
    title: 'Exchange rates',
    body: 'Add `src/rates.js`: `convert(cents, rate)` rounds half up to whole cents. Mention it in the README.',
  }),
  'docs/specs/tally/issues/04-report.md': issue({
    title: 'A report per category',
    dependsOn: '01, 02',
    body: 'Add `src/report.js`: `report(entries)` adds up per normalised category, largest first.',
  }),
  'docs/specs/tally/issues/05-csv.md': issue({
    title: 'Export as CSV',
    dependsOn: '01',
    body: 'Add `src/csv.js`: `toCsv(entries)` with a header line and quoted names.',
  }),
  'docs/specs/tally/issues/06-rename-total.md': issue({
    title: 'Call it sum',
    dependsOn: '01',
    body: 'Rename `total` in `src/ledger.js` to `sum`, everywhere. The old name goes.',
  }),
  'docs/specs/tally/issues/07-alerts.md': issue({
    title: 'Alerts over a limit',
    dependsOn: '01',
    body: 'Add `src/alerts.js`: `overLimit(entries, limit)` says by how many cents the entries are over the limit, or 0.',
  }),
  'docs/specs/tally/issues/08-command-line.md': issue({
    title: 'A command line',
    dependsOn: '04, 05, 06, 07',
    body: 'Add `src/main.js`: `run(lines)` reads lines `name;amount;category` and gives the report as text.',
  }),
};

/** One scripted attempt of an Issue. */
interface DemoAttempt {
  readonly waitMs: number;
  readonly output: readonly string[];
  readonly edits: readonly (
    | { readonly write: string; readonly text: string }
    | { readonly replace: string; readonly find: string; readonly with: string }
  )[];
  readonly envelope: { readonly status: 'done'; readonly summary: string };
}

const readme = (lines: readonly string[]): string =>
  `# tally\n\nAdds up what things cost.\n\n## Features\n\n- amounts in cents, never in floating point\n${lines.map((line) => `- ${line}\n`).join('')}`;

const ledgerLine = 'a ledger of entries';
const ratesLine = 'exchange rates, rounded half up';

const testHead = (names: string, from: string): string =>
  `import assert from 'node:assert/strict';\nimport { test } from 'node:test';\nimport { ${names} } from '../src/${from}.js';\n\n`;

const ledger = (name: string): string => `/** Entries in the order they came. */
export class Ledger {
  entries = [];

  add(name, cents, category) {
    this.entries.push({ name, cents, category });
  }
}

/** Adds the entries up, in cents. */
export function ${name}(entries) {
  return entries.reduce((cents, entry) => cents + entry.cents, 0);
}
`;

const ledgerTest = (name: string): string => `${testHead(`Ledger, ${name}`, 'ledger')}test('adds entries up', () => {
  const ledger = new Ledger();
  ledger.add('bread', 320, 'food');
  ledger.add('tram', 280, 'travel');
  assert.equal(${name}(ledger.entries), 600);
});
`;

const alerts = (name: string): string => `import { ${name} } from './ledger.js';

/** Says by how many cents the entries are over the limit. */
export function overLimit(entries, limit) {
  return Math.max(0, ${name}(entries) - limit);
}
`;

const alertsTest = `${testHead('overLimit', 'alerts')}test('is quiet below the limit', () => {
  const entries = [{ name: 'bread', cents: 320, category: 'food' }];
  assert.equal(overLimit(entries, 500), 0);
  assert.equal(overLimit(entries, 300), 20);
});
`;

const done = (summary: string): DemoAttempt['envelope'] => ({ status: 'done', summary });

/** What the workers of the demo do, attempt by attempt. */
export const demoScript: { readonly issues: Readonly<Record<string, readonly DemoAttempt[]>> } = {
  issues: {
    '01-ledger': [
      {
        waitMs: 1200,
        output: ['reading src/money.js', 'writing src/ledger.js and its test'],
        edits: [
          { write: 'src/ledger.js', text: ledger('total') },
          { write: 'test/ledger.test.js', text: ledgerTest('total') },
          { write: 'README.md', text: readme([ledgerLine]) },
        ],
        envelope: done('added the ledger'),
      },
      {
        waitMs: 800,
        output: ['both sides add a feature line: keeping both'],
        edits: [{ write: 'README.md', text: readme([ratesLine, ledgerLine]) }],
        envelope: done('kept both lines of the README'),
      },
    ],
    '02-categories': [
      {
        waitMs: 900,
        output: ['writing src/categories.js and its test'],
        edits: [
          {
            write: 'src/categories.js',
            text: `/** Brings a category's name into one form. */\nexport function normalise(name) {\n  return name.trim().toLowerCase();\n}\n`,
          },
          {
            write: 'test/categories.test.js',
            text: `${testHead('normalise', 'categories')}test('brings names into one form', () => {\n  assert.equal(normalise(' Food '), 'food');\n  assert.equal(normalise('  '), 'other');\n});\n`,
          },
        ],
        envelope: done('added categories'),
      },
      {
        waitMs: 900,
        output: ["the gate says: expected 'other', got ''", 'an empty name needs the default'],
        edits: [
          {
            replace: 'src/categories.js',
            find: 'return name.trim().toLowerCase();',
            with: "return name.trim().toLowerCase() || 'other';",
          },
        ],
        envelope: done('an empty name becomes other'),
      },
    ],
    '03-rates': [
      {
        waitMs: 2600,
        output: ['writing src/rates.js and its test'],
        edits: [
          {
            write: 'src/rates.js',
            text: `/** Converts cents at a rate, rounded half up to whole cents. */\nexport function convert(cents, rate) {\n  return Math.floor(cents * rate + 0.5);\n}\n`,
          },
          {
            write: 'test/rates.test.js',
            text: `${testHead('convert', 'rates')}test('rounds half up', () => {\n  assert.equal(convert(99, 0.5), 50);\n  assert.equal(convert(250, 0.5), 125);\n});\n`,
          },
          { write: 'README.md', text: readme([ratesLine]) },
        ],
        envelope: done('added rates'),
      },
      {
        waitMs: 1000,
        output: ['README.md conflicts with what landed meanwhile: keeping both lines'],
        edits: [{ write: 'README.md', text: readme([ledgerLine, ratesLine]) }],
        envelope: done('kept both lines of the README'),
      },
    ],
    '04-report': [
      {
        waitMs: 1500,
        output: ['writing src/report.js and its test'],
        edits: [
          {
            write: 'src/report.js',
            text: `import { normalise } from './categories.js';\n\n/** Adds entries up per category, largest first. */\nexport function report(entries) {\n  const cents = new Map();\n  for (const entry of entries) {\n    const category = normalise(entry.category);\n    cents.set(category, (cents.get(category) ?? 0) + entry.cents);\n  }\n  return [...cents].sort((left, right) => right[1] - left[1]);\n}\n`,
          },
          {
            write: 'test/report.test.js',
            text: `${testHead('report', 'report')}test('adds up per category, largest first', () => {\n  const entries = [\n    { name: 'tram', cents: 280, category: 'Travel' },\n    { name: 'bread', cents: 320, category: 'food' },\n    { name: 'tea', cents: 90, category: ' food' },\n  ];\n  assert.deepEqual(report(entries), [['food', 410], ['travel', 280]]);\n});\n`,
          },
        ],
        envelope: done('added the report'),
      },
    ],
    '05-csv': [
      {
        waitMs: 1900,
        output: ['writing src/csv.js and its test'],
        edits: [
          {
            write: 'src/csv.js',
            text: `import { format } from './money.js';\n\n/** Writes entries as CSV with a header line. */\nexport function toCsv(entries) {\n  const quote = (text) => \`"\${text.replaceAll('"', '""')}"\`;\n  const lines = entries.map((entry) => [quote(entry.name), format(entry.cents), quote(entry.category)].join(','));\n  return ['name,amount,category', ...lines, ''].join('\\n');\n}\n`,
          },
          {
            write: 'test/csv.test.js',
            text: `${testHead('toCsv', 'csv')}test('quotes names', () => {\n  const csv = toCsv([{ name: 'the "good" bread', cents: 320, category: 'food' }]);\n  assert.equal(csv, 'name,amount,category\\n"the ""good"" bread",3.20,"food"\\n');\n});\n`,
          },
        ],
        envelope: done('added the export'),
      },
    ],
    '06-rename-total': [
      {
        waitMs: 700,
        output: ['renaming total to sum'],
        edits: [
          { write: 'src/ledger.js', text: ledger('sum') },
          { write: 'test/ledger.test.js', text: ledgerTest('sum') },
        ],
        envelope: done('renamed total to sum'),
      },
      {
        waitMs: 700,
        output: ['src/alerts.js has landed meanwhile and still calls total: renaming there too'],
        edits: [{ write: 'src/alerts.js', text: alerts('sum') }],
        envelope: done('renamed in the alerts too'),
      },
    ],
    '07-alerts': [
      {
        waitMs: 2300,
        output: ['writing src/alerts.js and its test'],
        edits: [
          { write: 'src/alerts.js', text: alerts('total') },
          { write: 'test/alerts.test.js', text: alertsTest },
        ],
        envelope: done('added alerts'),
      },
      {
        waitMs: 900,
        output: ['green alone, red on the merged tree: total is called sum now'],
        edits: [{ write: 'src/alerts.js', text: alerts('sum') }],
        envelope: done('alerts use sum'),
      },
    ],
    '08-command-line': [
      {
        waitMs: 1400,
        output: ['writing src/main.js and its test'],
        edits: [
          {
            write: 'src/main.js',
            text: `import { Ledger, sum } from './ledger.js';\nimport { format, parse } from './money.js';\nimport { report } from './report.js';\n\n/** Reads lines "name;amount;category" and gives the report as text. */\nexport function run(lines) {\n  const ledger = new Ledger();\n  for (const line of lines) {\n    const [name, amount, category = ''] = line.split(';');\n    ledger.add(name, parse(amount), category);\n  }\n  const rows = report(ledger.entries).map(([category, cents]) => \`\${category}: \${format(cents)}\`);\n  return [...rows, \`sum: \${format(sum(ledger.entries))}\`].join('\\n');\n}\n`,
          },
          {
            write: 'test/main.test.js',
            text: `${testHead('run', 'main')}test('reports what was read', () => {\n  assert.equal(run(['bread;3.20;food', 'tram;2.80;travel', 'string;1.00']), 'food: 3.20\\ntravel: 2.80\\nother: 1.00\\nsum: 7.00');\n});\n`,
          },
        ],
        envelope: done('added the command line'),
      },
    ],
  },
};

/** The settings of the demo. */
export function demoPolicy(worktrees: string): string {
  return `[driver]
default = "scripted"

[driver.scripted]              # plays back demo.json, really, in real worktrees
script = "demo.json"

[budget]
attempts = 3

[verify]
test = "node --test"

[worktree]
root = ${JSON.stringify(worktrees)}
`;
}
