/** When what moved on the person's branch is taken along: `[integrate]`. */
import { z } from 'zod';
import type { IntegratePolicy } from '../policy.js';
import { checkTable, word, type Checked } from './check.js';

const tableSchema = z.strictObject({ base: word(['never', 'on-start', 'on-validate']).default('never') });

/** Reads `[integrate]`. */
export function readIntegrate(input: unknown): Checked<IntegratePolicy> {
  return checkTable(tableSchema, input ?? {}, ['integrate']);
}
