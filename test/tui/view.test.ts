import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { EventBody } from '../../src/event.js';
import { parseSpecSlug } from '../../src/issue.js';
import { issueStatus, reduce } from '../../src/state.js';
import type { RunState } from '../../src/state.js';
import { listingOf } from '../../src/tui/listing.js';
import { coarse, precise } from '../../src/tui/status.js';
import { cellsOf } from '../../src/tui/width.js';
import { frameOf, viewOf } from '../../src/tui/view.js';
import {
  after,
  attempt,
  event,
  facts,
  frame,
  gate,
  input,
  issue,
  mixedRun,
  oid,
  snapshot,
  spec,
  started,
  ui,
  wideRun,
} from './demo.js';

const log = ['$ npm test', 'ok 1 - signs in', 'ok 2 - signs out'];
const color = /\u001b\[[0-9;]*m/g;
const long = Array.from({ length: 100 }, (_, index) => `line ${index}`);
const finished = event(80, {
  type: 'run.finished',
  spec,
  exit: 2,
  reason: 'needs-human',
  tip: oid('e'),
  done: 1,
  total: 7,
  gitProcesses: 300,
  lines: ['02-api asks: Is a token in the URL acceptable?', 'next: giro status auth/02-api'],
});

test('a Spec that has no Issues yet shows that it is planned', () => {
  const planning = event(2, { type: 'spec.plan.started', spec, round: 0, plan: 1, driver: 'claude', log: '/log' });
  const state = after([
    started(),
    event(1, { type: 'spec.snapshotted', spec, base: oid('b'), tip: oid('e'), issues: [] }),
    planning,
  ]);
  for (const rows of [6, 12, 24]) expect(frame({ state, rows })).toMatch(/^Login for everyone \(auth\) +planning/);
  const shown = frame({ state, log: ['reading SPEC.md'] });
  expect(shown).toMatch(/^claude plans the Issues *$/m);
  expect(shown).toMatch(/^── plan by claude ─+ *\nreading SPEC\.md/m);
});

test('an Issue that is over has printed nothing, one at work has no output yet', () => {
  const shown = (id: string): string => frame({ ui: ui({ selected: issue(id) }) });
  expect(shown('01-store')).toContain('\nit printed nothing');
  expect(shown('03-login-page')).toContain('\nno output yet');
});

test('the header says what was spent of the budget that is nearest to its end, where there is room', () => {
  const sum = { calls: 2, costUsd: 0.62, unknownCosts: 0, tokens: 24_600, unknownTokens: 0 };
  const call = { type: 'budget.charged', spec, issue: issue('02-api'), role: 'worker', driver: 'claude' } as const;
  const charged = (budgets: Extract<EventBody, { type: 'budget.charged' }>['budgets']): RunState =>
    reduce(mixedRun, event(95, { ...call, usage: { costUsd: 0.31, tokens: 12_300 }, sum, budgets }));
  const row = (state: RunState, columns: number): string => frame({ state, columns }).split('\n')[1] ?? '';
  const both = charged([
    { key: 'run-cost', spent: 0.62, limit: 20 },
    { key: 'spec-cost', spent: 3.1, limit: 5 },
  ]);
  expect(row(both, 120)).toMatch(/ {2}spec-cost \$3\.10 of \$5\.00, 4 at once, tip eeeeeee$/);
  expect(row(both, 80)).toMatch(/waiting {2,}spec-cost \$3\.10 of \$5\.00$/);
  expect(row(both, 60)).not.toContain('$');
  expect(row(charged([]), 120)).toMatch(/ {2}\$0\.62 · 24\.6k tokens, 4 at once, tip eeeeeee$/);
});

test('what is done for the Spec as a whole has a row of its own', () => {
  const planning = event(90, { type: 'spec.plan.started', spec, round: 2, plan: 3, driver: 'claude', log: '/log' });
  const retrying = event(91, { type: 'spec.plan.retrying', spec, reason: 'no network', inMs: 5000, failures: 1 });
  const judged = event(92, {
    ...{ type: 'gate.started', scope: 'spec', gate: 'accept', issue: null, tree: oid('c'), log: '/log' },
    driver: 'codex',
  });
  const pauses = event(92, {
    ...{ type: 'gate.retrying', scope: 'spec', gate: 'accept', issue: null },
    ...{ reason: 'usage-limit', inMs: 5000, failures: 1 },
  });
  const passed = event(93, {
    ...{ type: 'gate.finished', scope: 'spec', gate: 'accept', issue: null, tree: oid('c'), verdict: 'pass' },
    ...{ ended: null, durationMs: 1, cached: false, findings: [] },
  });
  const row = (state: RunState): string | undefined => frame({ state }).split('\n')[2]?.trimEnd();
  const before = row(mixedRun);
  const states = [planning, retrying, judged, pauses, passed].reduce<readonly RunState[]>(
    (all, next) => [...all, reduce(all.at(-1) ?? mixedRun, next)],
    [],
  );
  expect(states.map(row)).toEqual([
    'claude plans the gaps of round 2',
    'the plan waits: no network',
    'gate accept by codex on the whole Spec',
    'gate accept waits: usage-limit',
    before,
  ]);
});

describe('the frame', () => {
  test('at 80x24', () => {
    expect(frame({ log })).toMatchInlineSnapshot(`
      "Login for everyone (auth)                                       running  1:12:00
      1 of 7 done, 1 needs a human, 2 running, 3 waiting        4 at once, tip eeeeeee
      wave 1  1 of 2 done
      ❯ ✓ done        01-store      #1      3m  Keep sessions in a st…  commit eeeeeee
        ! needs-human 02-api        #3     11m  Public API f…  Is a token in the URL…
      wave 2  0 of 3 done
        ► working     03-login-page #2   1h09m  Login page
        ≟ judging     04-session    #1   1h08m  Session cookie  gate unit
        ∙ waiting     05-logout                 waits for 02-api, which needs a human
      wave 3  0 of 2 done
        ∙ waiting     06-audit                  waits for 02-api, which needs a human
        ∙ waiting     07-docs                   Docs  waits for 03-login-page
      ── 01-store  Keep sessions in a store ──────────────────────────────────────────
      commit eeeeeee
      $ npm test
      ok 1 - signs in
      ok 2 - signs out






      ? help  Up/Down move  Enter log  n needs a human  q quit"
    `);
  });

  test('at 40x12, with an Issue that needs a human selected', () => {
    expect(frame({ log, columns: 40, rows: 12, ui: ui({ selected: issue('02-api') }) })).toMatchInlineSnapshot(`
      "Login for everyone (a…  running  1:12:00
      1 of 7 done, 1 needs a human, 2 running…
      wave 1  1 of 2 done
        ✓ done        01-store      #1  
      ❯ ! needs-human 02-api        #3  
      wave 2  0 of 3 done
        ► working     03-login-page #2  
      ── 02-api  Public API for signing in… ──
      giro status auth/02-api
      ok 1 - signs in
      ok 2 - signs out
      ? help  Up/Down move  Enter log  n need…"
    `);
  });

  test('at 20 columns', () => {
    expect(frame({ log, columns: 20, rows: 12, ui: ui({ selected: issue('07-docs') }) })).toMatchInlineSnapshot(`
      "running  1:12:00
      1 of 7 done, 1 need…
        ≟ judging     04-…
        ∙ waiting     05-…
      wave 3  0 of 2 done
        ∙ waiting     06-…
      ❯ ∙ waiting     07-…
      ── 07-docs  Docs ───
      waits for
      ok 1 - signs in
      ok 2 - signs out
      ? help  Up/Down mov…"
    `);
  });

  test('of wide, combined and endless titles', () => {
    expect(frame({ state: wideRun, columns: 60, rows: 12 })).toMatchInlineSnapshot(`
      "⏳ 修复登录 (auth)                          running  1:12:00
      0 of 5 done, 2 running, 3 ready       4 at once, tip bbbbbbb
      wave 1  0 of 5 done
      ❯ ► working     01-glass #1   1h11m  ⏳ 修复登录
        ◦ ready       02-zwj               👩\\u{200d}👩\\u{200d}👧…
        ◦ ready       03-mark              é
        ◦ ready       04-long              xxxxxxxxxxxxxxxxxxxxxx…
      ── 01-glass  ⏳ 修复登录 ───────────────────────────────────
      no output yet


      ? help  Up/Down move  Enter log  q quit"
    `);
  });

  test('in ASCII holds nothing else of its own', () => {
    const text = frame({ log, unicode: false });
    expect(text).toMatchInlineSnapshot(`
      "Login for everyone (auth)                                       running  1:12:00
      1 of 7 done, 1 needs a human, 2 running, 3 waiting        4 at once, tip eeeeeee
      wave 1  1 of 2 done
      > v done        01-store      #1      3m  Keep sessions in a st~  commit eeeeeee
        ! needs-human 02-api        #3     11m  Public API f~  Is a token in the URL~
      wave 2  0 of 3 done
        * working     03-login-page #2   1h09m  Login page
        ? judging     04-session    #1   1h08m  Session cookie  gate unit
        . waiting     05-logout                 waits for 02-api, which needs a human
      wave 3  0 of 2 done
        . waiting     06-audit                  waits for 02-api, which needs a human
        . waiting     07-docs                   Docs  waits for 03-login-page
      -- 01-store  Keep sessions in a store ------------------------------------------
      commit eeeeeee
      $ npm test
      ok 1 - signs in
      ok 2 - signs out






      ? help  Up/Down move  Enter log  n needs a human  q quit"
    `);
    expect(text).toMatch(/^[\n -~]*$/);
  });

  test('without colour has no control code, with it the same text', () => {
    const plain = frameOf(input({ log }), false);
    const colored = frameOf(input({ log }), true);
    expect(plain.join('')).not.toContain('\u001b');
    expect(colored.map((row) => row.replace(color, ''))).toEqual(plain);
    for (const row of colored)
      expect(row.lastIndexOf('\u001b[0m')).toBeGreaterThanOrEqual(row.lastIndexOf('\u001b[') - 3);
  });

  test('with the log in focus gives it all rows and says where it is', () => {
    const focused = ui({ selected: issue('03-login-page'), focus: 'log', offset: 3 });
    expect(frame({ log: long, rows: 12, ui: focused })).toMatchInlineSnapshot(`
      "Login for everyone (auth)                                       running  1:12:00
      1 of 7 done, 1 needs a human, 2 running, 3 waiting        4 at once, tip eeeeeee
      ── 03-login-page  Login page ────────────────────────────── paused, G follows ──
      log: .giro/runs/r1/03-login-page/2.log
      line 90
      line 91
      line 92
      line 93
      line 94
      line 95
      line 96
      Esc back  Up/Down scroll  G follow  ? help"
    `);
  });

  test('of the help', () => {
    expect(frame({ ui: ui({ focus: 'help' }) })).toMatchInlineSnapshot(`
      "Login for everyone (auth)                                       running  1:12:00
      1 of 7 done, 1 needs a human, 2 running, 3 waiting        4 at once, tip eeeeeee
      Up, k       one row up; in the log, one line
      Down, j     one row down; in the log, one line
      PgUp        one page up
      PgDn        one page down
      Ctrl+U      half a page up
      Ctrl+D      half a page down
      g, Home     first row; in the log, the oldest line shown
      G, End      last row; in the log, the newest line, and follow it
      n           next Issue that needs a human
      Enter, Tab  from the list to the log of the selected Issue; Tab also goes back
      Esc         back to the list
      ?           show or hide this help
      Ctrl+L      draw the whole screen anew
      q           while the run goes on, ask whether to stop it; when it has finished,
                  leave
      Ctrl+C      stop in good order; pressed again, end everything at once





      Esc back  Up/Down scroll"
    `);
  });

  test('of a run that has finished says how, and stands still', () => {
    const state = reduce(mixedRun, finished);
    const text = frame({ state });
    expect(text.split('\n').slice(0, 3)).toEqual([
      'Login for everyone (auth)                 finished: needs-human, exit 2  1:20:00',
      '1 of 7 done, 1 needs a human, 2 running, 3 waiting        4 at once, tip eeeeeee',
      'next: giro status auth/02-api',
    ]);
    expect(frame({ state, now: input().now + 86_400_000 })).toBe(text);
  });

  test('of a run that stops says why, also where there is little room', () => {
    const state = reduce(mixedRun, event(73, { type: 'run.stopping', reason: 'interrupted' }));
    expect(frame({ state, rows: 10 })).toContain('stopping: interrupted');
    expect(frame({ state })).toContain('Ctrl+C again ends everything at once');
  });

  test('goes with the time: the header by seconds, a row by minutes', () => {
    const row = (ms: number): string =>
      frame({ now: input().now + ms })
        .split('\n')
        .filter((line) => /Login|working/.test(line))
        .map((line) => /\d+[:h]\d\S*/.exec(line)?.[0])
        .join(' ');
    expect([0, 1_000, 59_000, 60_000].map(row)).toEqual([
      '1:12:00 1h09m',
      '1:12:01 1h09m',
      '1:12:59 1h09m',
      '1:13:00 1h10m',
    ]);
  });

  test('asks before it stops a run', () => {
    expect(
      frame({ ui: ui({ asking: true }) })
        .split('\n')
        .at(-1),
    ).toBe('stop the run? y/n');
  });

  test('of a run without Issues is empty but for its header', () => {
    expect(frame({ state: after([started()]), rows: 6 }).trimEnd()).toMatch(
      /^Login for everyone \(auth\)[^\n]+\n+\? help/,
    );
  });
});

describe('every frame', () => {
  const states = fc.constantFrom(mixedRun, wideRun, after([]), after([started()]), reduce(mixedRun, finished));
  const screens = fc.record({
    ui: fc.record({
      selected: fc.constantFrom(null, ...mixedRun.issues.keys(), issue('99-gone')),
      top: fc.nat(20),
      focus: fc.constantFrom('list' as const, 'log' as const, 'help' as const),
      offset: fc.nat(200),
      asking: fc.boolean(),
    }),
    columns: fc.integer({ min: 2, max: 130 }),
    rows: fc.integer({ min: 1, max: 60 }),
    log: fc.constantFrom([], log, long, ['登录'.repeat(500), '']),
    unicode: fc.boolean(),
  });

  test('has exactly the rows of the screen, none wider than it', () => {
    fc.assert(
      fc.property(states, screens, (state, screen) => {
        const rows = frameOf(input({ ...screen, state }), false);
        expect(rows).toHaveLength(screen.rows);
        for (const row of rows) {
          expect(cellsOf(row)).toBeLessThanOrEqual(screen.columns);
          expect(row).not.toContain('\n');
        }
      }),
      { numRuns: 300 },
    );
  });

  test('shows the selected Issue, and its own choice of the first row does not move it', () => {
    fc.assert(
      fc.property(screens, (screen) => {
        const shown = input({
          ...screen,
          ui: { ...screen.ui, focus: 'list' },
          rows: Math.max(6, screen.rows),
          columns: 80,
        });
        const view = viewOf(shown);
        expect(view.lines.filter(([first]) => first?.text === '❯ ' || first?.text === '> ')).toHaveLength(1);
        expect(viewOf({ ...shown, ui: { ...shown.ui, top: view.top } })).toEqual(view);
      }),
    );
  });
});

test('the list shows only the rows that fit, with the selected one among them and its wave above the first', () => {
  const many = after([
    started(),
    snapshot(
      Array.from({ length: 1000 }, (_, n) => facts(`${n + 1}-issue`, 'Title', { wave: 1 + Math.floor(n / 100) })),
    ),
  ]);
  const at = (id: string, top = 0): string => frame({ state: many, ui: ui({ selected: issue(id), top }), rows: 24 });
  const list = at('500-issue').split('\n').slice(2, 15);
  expect(list.at(-1)).toContain('❯ ◦ ready       500-issue');
  expect(list).toHaveLength(13);
  // Row 505 is the first of those already shown, so nothing moves; 501 is the first of wave 6.
  expect(viewOf(input({ state: many, ui: ui({ selected: issue('500-issue'), top: 495 }) })).top).toBe(495);
  expect(at('501-issue', 900).split('\n').slice(2, 4)).toEqual([
    'wave 6  0 of 100 done',
    expect.stringContaining('❯ ◦ ready       501-issue'),
  ]);
  expect(at('1000-issue', 0)).toContain('❯ ◦ ready       1000-issue');
});

test('a duration in a row seldom changes its text, one in the header every second', () => {
  expect([0, 9_999, 10_000, 59_999, 60_000, 3_599_999, 3_660_000, 90_000_000].map(coarse)).toEqual([
    '<10s',
    '<10s',
    '10s',
    '50s',
    '1m',
    '59m',
    '1h01m',
    '1d01h',
  ]);
  expect([-5, 9_999, 65_000, 3_661_000].map(precise)).toEqual(['0:00', '0:09', '1:05', '1:01:01']);
});

test('every status has its word and says what it does or waits for', () => {
  const base = [started(), snapshot([facts('01-a', 'A')])];
  const row = (...events: Parameters<typeof after>[0]): string =>
    frame({ state: after([...base, ...events]), columns: 100, rows: 8 })
      .split('\n')
      .find((line) => line.includes('01-a')) ?? '';
  const id = issue('01-a');
  const findings = [{ message: 'exit code 1', gate: 'unit' }];
  expect(
    [
      row(),
      row(attempt(0, '01-a')),
      row(attempt(0, '01-a'), gate(1, '01-a')),
      row(attempt(0, '01-a'), event(1, { type: 'attempt.judged', issue: id, attempt: 1, verdict: 'fail', findings })),
      row(
        attempt(0, '01-a'),
        event(1, { type: 'issue.retrying', issue: id, reason: 'rate limit', inMs: 30_000, failures: 1 }),
      ),
      row(attempt(0, '01-a'), event(1, { type: 'issue.queued', issue: id })),
      row(attempt(0, '01-a'), event(1, { type: 'candidate.made', issue: id, tip: oid('b'), tree: oid('c') })),
      row(attempt(0, '01-a'), gate(1, '01-a', 'integration')),
      row(event(1, { type: 'candidate.conflicted', issue: id, tip: oid('b'), files: ['a.ts'] })),
      row(event(1, { type: 'lane.held', issue: id, message: 'giro/auth is checked out' })),
      row(
        event(1, {
          type: 'lease.refused',
          issue: id,
          holder: { spec: parseSpecSlug('pay')!, issue: id, what: 'src/**' },
        }),
      ),
      row(attempt(0, '01-a'), event(62, { type: 'issue.integrated', issue: id, commit: oid('e'), attempts: 1 })),
      row(snapshot([facts('01-a', 'A', { state: 'needs-human', question: 'Which\ncookie?' })])),
      row(snapshot([facts('01-a', 'A', { state: 'wontfix' })])),
    ].map((line) => line.slice(2)),
  ).toMatchInlineSnapshot(`
    [
      "◦ ready       01-a             A",
      "► working     01-a #1   1h12m  A",
      "≟ judging     01-a #1   1h12m  A  gate unit",
      "↻ retrying    01-a #1   1h12m  A  exit code 1",
      "↻ retrying    01-a #1   1h12m  A  waits 30s: rate limit",
      "⇢ integrating 01-a #1   1h12m  A  queued",
      "≟ verifying   01-a #1   1h12m  A",
      "≟ verifying   01-a #1   1h12m  A  gate unit",
      "↻ retrying    01-a             A  conflict in a.ts",
      "⊘ held        01-a             A  giro/auth is checked out",
      "∙ waiting     01-a             A  waits for pay/01-a, which has src/**",
      "✓ done        01-a #1   1h02m  A  commit eeeeeee",
      "! needs-human 01-a             A  Which⏎cookie?",
      "- wontfix     01-a             A",
    ]
  `);
});

/** A run at every step of C014: a chain a, b, c and d, of which c also needs d. */
const chain = [
  started(),
  snapshot([
    facts('01-a', 'A'),
    facts('02-b', 'B', { wave: 2, dependsOn: [issue('01-a')] }),
    facts('03-c', 'C', { wave: 3, dependsOn: [issue('02-b'), issue('04-d')] }),
    facts('04-d', 'D'),
  ]),
];

test('C014: rows and counts agree with the one status of state.ts at every step', () => {
  const steps = [
    ...['01-a', '04-d', '02-b', '03-c'].flatMap((id, minute) => [
      attempt(minute, id),
      event(minute, { type: 'issue.integrated', issue: issue(id), commit: oid('e'), attempts: 1 }),
    ]),
  ];
  let state = after(chain);
  for (const step of [null, ...steps]) {
    if (step !== null) state = reduce(state, step);
    agree(state);
  }
  expect(frame({ state: after(chain) })).toMatch(/02-b .*waits for 01-a\n/);
  expect(frame({ state: after([...chain, ...steps.slice(0, 2)]) })).toMatch(/ready +02-b/);
});

function agree(state: RunState): void {
  const statuses = [...state.issues.keys()].map((id) => issueStatus(state.issues, id).kind);
  const count = (...kinds: readonly string[]): number => statuses.filter((kind) => kinds.includes(kind)).length;
  const rows = frame({ state }).split('\n');
  for (const [index, id] of [...state.issues.keys()].entries()) {
    expect(rows.find((row) => row.includes(` ${id} `))).toContain(` ${statuses[index]!} `);
  }
  expect(listingOf(state.issues).counts).toMatchObject({
    done: count('done'),
    ready: count('ready'),
    waiting: count('waiting'),
    running: count('working', 'judging', 'between', 'retrying', 'integrating'),
    needsHuman: count('needs-human'),
  });
}

test('whatever the graph, counts are what issueStatus says', () => {
  const kinds = fc.constantFrom('ready' as const, 'done' as const, 'needs-human' as const, 'wontfix' as const);
  const graphs = fc.array(fc.tuple(kinds, fc.array(fc.nat(8), { maxLength: 3 })), { minLength: 1, maxLength: 9 });
  fc.assert(
    fc.property(graphs, (nodes) => {
      const issues = nodes.map(([state, on], index) =>
        facts(`${index}-x`, 'X', { state, dependsOn: on.filter((n) => n < index).map((n) => issue(`${n}-x`)) }),
      );
      const state = after([started(), snapshot(issues)]);
      const { counts } = listingOf(state.issues);
      const statuses = [...state.issues.keys()].map((id) => issueStatus(state.issues, id).kind);
      expect([counts.ready, counts.waiting]).toEqual([
        statuses.filter((kind) => kind === 'ready').length,
        statuses.filter((kind) => kind === 'waiting').length,
      ]);
    }),
  );
});
