import { expect, test } from 'vitest';
import { goes, listText, stays, type Found } from '../../src/cli/clean-items.js';
import { parseIssueId, parseOid, parseSpecSlug } from '../../src/issue.js';

const spec = parseSpecSlug('auth') ?? null;
const issue = parseIssueId('01-login') ?? null;
const oid = parseOid('1'.repeat(40));

function branch(number: number): Found {
  const name = `refs/heads/giro-issue/auth/${String(number)}-x`;
  return goes(
    { kind: 'branch', spec, name, why: 'every commit of it is in giro/auth' },
    { kind: 'ref', ref: name, oid },
  );
}

test('the list says of each thing what it is, what it takes and why; of many alike refs at once', () => {
  const folder = '/home/me/.cache/giro/shop-1a2b3c4d/auth/w1';
  const found = [
    goes(
      {
        ...{ kind: 'worktree', spec, issue, name: folder, bytes: 420_000_000, why: 'integrated in giro/auth' },
        ignored: [
          { path: '.env.local', bytes: 4_096, kind: 'other' },
          { path: 'node_modules', bytes: 412_000_000, kind: 'made' },
        ],
        saves: ['ignored file .env.local'],
      },
      { kind: 'folder', path: folder },
    ),
    ...[2, 3, 4, 5, 6, 7].map(branch),
    stays({
      kind: 'logs',
      spec: null,
      name: '/shop/.git/giro/runs',
      bytes: 9_000,
      why: 'logs of one run',
      hint: 'take \u001b[2J',
    }),
  ];
  expect(listText(found.map(({ item }) => item))).toMatchInlineSnapshot(`
    "can go (7, 420 MB):
      auth
        worktree  01-login, 420 MB: integrated in giro/auth
                  /home/me/.cache/giro/shop-1a2b3c4d/auth/w1
                  ignored in it: node_modules, 412 MB; .env.local, 4.1 KB
                  saved first: ignored file .env.local
        branch    giro-issue/auth/2-x, giro-issue/auth/3-x and 4 more: every commit of it is in giro/auth

    stays (1, 9.0 KB):
      the repository
        logs      runs, 9.0 KB: logs of one run
                  /shop/.git/giro/runs
                  take \\u{1b}[2J
    "
  `);
});
