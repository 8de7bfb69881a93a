/** Reads what a call says that it cost. What is not plainly a number is unknown, never 0. */
import { z } from 'zod';
import { printable } from '../platform/text.js';
import { unknownUsage, type Usage } from '../usage.js';

/** What a call cost, and which model it was. */
export interface Spent {
  readonly usage: Usage;
  readonly model: string | null;
}

const amount = z.number().nonnegative().nullable().catch(null);
const count = z.number().int().nonnegative().nullable().catch(null);

const envelopeSchema = z.object({
  usage: z.object({ 'cost-usd': amount.default(null), tokens: count.default(null) }),
});

const claudeSchema = z.object({
  total_cost_usd: amount.default(null),
  usage: z
    .object({
      input_tokens: count.default(null),
      output_tokens: count.default(null),
      cache_creation_input_tokens: count.default(null),
      cache_read_input_tokens: count.default(null),
    })
    .nullable()
    .catch(null)
    .default(null),
  modelUsage: z.record(z.string(), z.unknown()).catch({}).default({}),
});

/** The `usage` that a `command` agent puts into its envelope. */
export function envelopeUsage(value: Readonly<Record<string, unknown>>): Spent {
  const parsed = envelopeSchema.safeParse(value);
  if (!parsed.success) return { usage: unknownUsage, model: null };
  const { 'cost-usd': costUsd, tokens } = parsed.data.usage;
  return { usage: { costUsd, tokens }, model: null };
}

/** The closing line of Claude Code. */
export function claudeUsage(value: Readonly<Record<string, unknown>>): Spent {
  const parsed = claudeSchema.safeParse(value);
  if (!parsed.success) return { usage: unknownUsage, model: null };
  const { total_cost_usd: costUsd, usage, modelUsage } = parsed.data;
  const models = Object.keys(modelUsage).map((name) => printable(name).slice(0, 60));
  return {
    usage: { costUsd, tokens: usage === null ? null : sumOf(Object.values(usage)) },
    model: models.length === 0 ? null : models.slice(0, 5).join(', '),
  };
}

/** Both ways have to be told; what is told beside them counts too. */
function sumOf(counts: readonly (number | null)[]): number | null {
  const known = counts.filter((one) => one !== null);
  return known.length === 0 ? null : known.reduce((sum, one) => sum + one, 0);
}
