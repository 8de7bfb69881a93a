/** What a worker says at its end. It says only that the attempt is over: the gates judge the tree either way. */
import { z } from 'zod';
import { failed, ok } from '../failure.js';
import type { ActorResult, DriverOutcome, EnvelopeContract } from './driver.js';
import { describeMistake, longText } from './wording.js';

const workerSchema = z.object({
  status: z.enum(['done', 'blocked']),
  summary: longText().exactOptional(),
  question: longText().exactOptional(),
});

/** The envelope of a worker. */
export type WorkerEnvelope = z.infer<typeof workerSchema>;

/** What the call of a worker came to. */
export type WorkerResult = ActorResult<WorkerEnvelope>;

/** The whole outcome of the call of a worker. */
export type WorkerOutcome = DriverOutcome<WorkerEnvelope>;

/** For a worker exit 0 alone means `done`: the tree speaks for itself. */
export const workerContract: EnvelopeContract<WorkerEnvelope> = {
  fields: ['status'],
  // An output holds other things too: {"status":"ok"} of some server in the middle of it is not an attempt at an envelope.
  isMeant: ({ status }) => status === 'done' || status === 'blocked' || status === 'unavailable',
  parse(value) {
    const parsed = workerSchema.safeParse(value);
    return parsed.success ? ok(parsed.data) : failed(describeMistake(parsed.error));
  },
  schema: {
    type: 'object',
    properties: {
      status: { enum: ['done', 'blocked'] },
      summary: { type: 'string' },
      question: { type: 'string' },
    },
    required: ['status'],
  },
  absent: { status: 'done' },
  single: false,
  noted: (envelope, note) => ({
    ...envelope,
    summary: envelope.summary === undefined ? note : `${envelope.summary} (${note})`,
  }),
};
