import { expect, test } from 'vitest';
import { checkpointOf, commitMessage, trailer } from '../../src/store/trailers.js';

test('what giro writes into a message is what it reads back', () => {
  const message = commitMessage({
    subject: '01-a: a title',
    body: 'Giro-Base: not this\n\nmore',
    checkpoint: 'integrated',
    trailers: { 'Giro-Base': 'abc', 'Giro-Issue': '01-a' },
  });
  expect(checkpointOf(message)).toBe('integrated');
  expect(trailer(message, 'Giro-Base')).toBe('abc');
  expect(trailer(message, 'Giro-Other')).toBeUndefined();
  expect(message.endsWith('Giro-Checkpoint: integrated\n')).toBe(true);
});

test("a person's message has no checkpoint, whatever it quotes above its last paragraph", () => {
  expect(checkpointOf('fix: it\n')).toBeUndefined();
  expect(checkpointOf('revert\n\nGiro-Checkpoint: working\n\nnot needed any more\n')).toBeUndefined();
});
