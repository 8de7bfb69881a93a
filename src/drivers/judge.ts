/** What a judge says at its end. Only the structured field counts: no word of its prose is read. */
import { z } from 'zod';
import { failed, ok } from '../failure.js';
import type { EnvelopeContract } from './driver.js';
import { describeMistake, longText } from './wording.js';

const mostFindings = 100;

const findingSchema = z.object({
  message: longText().refine((text) => text.trim() !== '', 'is empty'),
  file: longText().nullish(),
  line: z.number().int().positive().nullish(),
  severity: longText().nullish(),
});

const judgeSchema = z.object({
  verdict: z.enum(['pass', 'fail']),
  findings: z.array(findingSchema).max(mostFindings),
});

/** The envelope of a judge. */
export type JudgeEnvelope = z.infer<typeof judgeSchema>;

/** One reason of a judge, as it says it. */
export type JudgeFinding = z.infer<typeof findingSchema>;

/** A judge without an envelope has said nothing, and one that says two things has said nothing either. */
export const judgeContract: EnvelopeContract<JudgeEnvelope> = {
  fields: ['verdict'],
  isMeant: () => true,
  parse(value) {
    const parsed = judgeSchema.safeParse(value);
    return parsed.success ? ok(parsed.data) : failed(describeMistake(parsed.error));
  },
  schema: {
    type: 'object',
    properties: {
      verdict: { enum: ['pass', 'fail'] },
      findings: {
        type: 'array',
        items: {
          type: 'object',
          properties: {
            message: { type: 'string' },
            file: { type: 'string' },
            line: { type: 'integer', minimum: 1 },
            severity: { type: 'string' },
          },
          required: ['message'],
        },
      },
    },
    required: ['verdict', 'findings'],
  },
  absent: null,
  single: true,
};
