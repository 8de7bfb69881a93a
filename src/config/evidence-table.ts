/** What giro.toml asks of evidence: `[evidence]`, and the rules of a gate. */
import { z } from 'zod';
import type { EvidencePolicy, GateRules } from '../policy.js';
import { checkTable, filledText, insidePath, wholeNumber, word, type Checked } from './check.js';

const tableSchema = z.strictObject({
  baseline: word(['fail', 'allow']).default('fail'),
  flaky: word(['fail', 'warn']).default('fail'),
  proof: word(['red-green']).optional(),
});

/** Reads `[evidence]`. */
export function readEvidence(input: unknown): Checked<EvidencePolicy> {
  const { problems, value } = checkTable(tableSchema, input ?? {}, ['evidence']);
  if (value === undefined) return { problems };
  const { baseline, flaky, proof } = value;
  return { problems, value: { baseline, flaky, proof: proof ?? null } };
}

/** The keys of a command gate that ask for more than its exit code. */
export const ruleShape = {
  'min-tests': wholeNumber(1, 1_000_000).optional(),
  'must-match': expression().optional(),
  'must-not-match': expression().optional(),
  junit: insidePath().optional(),
};

/** Names the rules as the gates know them. */
export function rulesOf(read: z.output<z.ZodObject<typeof ruleShape>>): GateRules {
  return {
    minTests: read['min-tests'] ?? null,
    mustMatch: read['must-match'] ?? null,
    mustNotMatch: read['must-not-match'] ?? null,
    junit: read.junit ?? null,
  };
}

/** A regular expression, looked for in each line alone. */
function expression() {
  return filledText('must be a regular expression').superRefine((text, context) => {
    try {
      new RegExp(text, 'u');
    } catch (error) {
      const reason = error instanceof Error ? error.message.replace(/^Invalid regular expression: /, '') : '';
      context.addIssue({
        code: 'custom',
        message: 'must be a regular expression of JavaScript',
        params: { hint: `${reason}; write a backslash twice, or the text in single quotes` },
      });
    }
  });
}
