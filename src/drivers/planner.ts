/** What a planner ends with: Issues to write, or questions that only a person can answer. Its texts are data (L11). */
import { z } from 'zod';
import { failed, ok } from '../failure.js';
import type { EnvelopeContract } from './driver.js';
import { describeMistake, longText } from './wording.js';

/** One Issue as a planner describes it. */
export interface PlannedText {
  readonly slug: string;
  readonly title: string;
  readonly body: string;
  /** As typed: slugs of this plan, or ids and numbers of Issues. */
  readonly dependsOn: readonly string[];
  readonly touches: readonly string[];
  readonly resources: readonly string[];
}

/** The envelope of a planner. */
export type PlannerEnvelope =
  | { readonly kind: 'issues'; readonly issues: readonly PlannedText[] }
  | { readonly kind: 'questions'; readonly questions: readonly string[] };

/** Models write one entry without its list, and numbers without quotes: both say what is meant. */
const texts = z
  .union([z.string(), z.number()])
  .or(z.array(z.union([z.string(), z.number()])))
  .nullish()
  .transform((value) => (value === null || value === undefined ? [] : [value].flat().map(String)));

/** A key that is not known may be an order in other words (`dependsOn`): an Issue without it would start too early. */
const issueSchema = z.strictObject(
  { slug: z.string(), title: z.string(), body: z.string(), 'depends-on': texts, touches: texts, resources: texts },
  {
    error: (issue) =>
      issue.code === 'unrecognized_keys'
        ? `unknown key ${issue.keys.join(', ')}; allowed: slug, title, body, depends-on, touches, resources`
        : undefined,
  },
);

const plannerSchema = z.object({
  issues: z.array(issueSchema).nullish(),
  questions: z
    .array(longText())
    .nullish()
    .transform((questions) => (questions ?? []).filter((question) => question.trim() !== '')),
});

/** A planner has to say something: exit 0 alone is no plan. */
export const plannerContract: EnvelopeContract<PlannerEnvelope> = {
  fields: ['issues', 'questions'],
  isMeant: ({ issues, questions }) => Array.isArray(issues) || Array.isArray(questions),
  parse(value) {
    const parsed = plannerSchema.safeParse(value);
    if (!parsed.success) return failed(describeMistake(parsed.error));
    const { issues, questions } = parsed.data;
    if (questions.length > 0 && (issues ?? []).length > 0)
      return failed('the envelope is not valid: it has both issues and questions');
    if (questions.length > 0) return ok({ kind: 'questions', questions });
    if (issues === null || issues === undefined)
      return failed('the envelope is not valid: it has neither issues nor questions');
    return ok({
      kind: 'issues',
      issues: issues.map(({ 'depends-on': dependsOn, ...issue }) => ({ ...issue, dependsOn })),
    });
  },
  schema: {
    type: 'object',
    properties: {
      issues: {
        type: 'array',
        items: {
          type: 'object',
          properties: {
            slug: { type: 'string' },
            title: { type: 'string' },
            body: { type: 'string' },
            'depends-on': { type: 'array', items: { type: 'string' } },
            touches: { type: 'array', items: { type: 'string' } },
            resources: { type: 'array', items: { type: 'string' } },
          },
          required: ['slug', 'title', 'body'],
          additionalProperties: false,
        },
      },
      questions: { type: 'array', items: { type: 'string' } },
    },
  },
  absent: null,
  single: false,
};
