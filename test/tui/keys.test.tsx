import { useInput } from 'ink';
import { render } from 'ink-testing-library';
import type { ReactElement } from 'react';
import { expect, test } from 'vitest';
import { actionOf, bindings, namesOf } from '../../src/tui/keys.js';

function Probe({ onNames }: { readonly onNames: (names: readonly string[]) => void }): ReactElement | null {
  useInput((input, key) => onNames(namesOf(input, key)));
  return null;
}

/** What a terminal sends for the keys that are no plain characters. */
const sent: Readonly<Record<string, string>> = {
  Up: '\u001b[A',
  Down: '\u001b[B',
  PgUp: '\u001b[5~',
  PgDn: '\u001b[6~',
  Home: '\u001b[H',
  End: '\u001b[F',
  Enter: '\r',
  Tab: '\t',
  Esc: '\u001b',
  'Ctrl+C': '\u0003',
  'Ctrl+D': '\u0004',
  'Ctrl+L': '\u000c',
  'Ctrl+U': '\u0015',
};

async function typed(text: string): Promise<readonly string[]> {
  return new Promise((resolve) => {
    const { stdin, unmount } = render(
      <Probe
        onNames={(names) => {
          unmount();
          resolve(names);
        }}
      />,
    );
    stdin.write(text);
  });
}

const everyKey = bindings.flatMap((binding) => binding.keys.map((key) => ({ key, action: binding.action })));

test.each(everyKey)('$key as a terminal sends it asks for $action', async ({ key, action }) => {
  const names = await typed(sent[key] ?? key);
  expect(names).toEqual([key]);
  expect(actionOf(key)).toBe(action);
});

test('no key is bound twice', () => {
  const keys = everyKey.map(({ key }) => key);
  expect(new Set(keys).size).toBe(keys.length);
});

test('keys that arrive in one read are told apart, control characters too', async () => {
  expect(await typed('jjG')).toEqual(['j', 'j', 'G']);
  expect(await typed('\u0003\u0003')).toEqual(['Ctrl+C', 'Ctrl+C']);
});

test('what is pressed together with Alt is no key of the board', async () => {
  expect(await typed('\u001bq')).toEqual([]);
});
