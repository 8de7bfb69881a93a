/** Turns how a process ended and what it left into the result of the call. Pure; the same for every driver. */
import type { Ended } from '../event.js';
import { unreachable } from '../failure.js';
import { formatLimit } from '../platform/duration.js';
import type { ActorResult, EnvelopeContract } from './driver.js';
import type { EnvelopeReading } from './envelope.js';

/** The exit code with which a `command` agent says that it could not work at all (EX_TEMPFAIL). */
const unavailableExit = 75;

/** Judges an ending. Text that is not one of the agreed structures changes nothing. */
export function judgeEnding<T>(
  ended: Ended,
  envelope: EnvelopeReading<T>,
  { absent }: Pick<EnvelopeContract<T>, 'absent'>,
): ActorResult<T> {
  switch (ended.kind) {
    case 'exited':
      return judgeExit(ended.code, envelope, absent);
    case 'signalled':
      return { kind: 'operation', reason: `agent was killed by ${ended.signal}` };
    case 'could-not-start':
      return { kind: 'operation', reason: ended.reason };
    case 'timed-out':
      return { kind: 'failed', reason: `agent timed out after ${formatLimit(ended.limitMs)}` };
    case 'stalled':
      return { kind: 'failed', reason: `agent was ended: ${ended.reason}` };
    case 'cancelled':
      return { kind: 'stopped' };
    default:
      return unreachable(ended);
  }
}

/** Says which limit on processes or memory an agent met that did not do its work; one that did has coped. */
export function withLimit<T>(result: ActorResult<T>, met: string | null): ActorResult<T> {
  if (met === null || (result.kind !== 'failed' && result.kind !== 'operation')) return result;
  return { ...result, reason: `${result.reason}: ${met}` };
}

function judgeExit<T>(code: number, envelope: EnvelopeReading<T>, absent: T | null): ActorResult<T> {
  if (code === unavailableExit && envelope.kind === 'unavailable') {
    const { reason, until } = envelope.unavailable;
    const kind = reason === 'usage-limit' ? 'usage-limit' : 'operation';
    return { kind, reason: `agent is unavailable: ${reason}`, ...(until === undefined ? {} : { until }) };
  }
  if (code !== 0) {
    const why = envelope.kind === 'error' ? `: ${envelope.reason}` : '';
    return { kind: 'failed', reason: `agent exited ${String(code)}${why}` };
  }
  switch (envelope.kind) {
    case 'valid':
      return { kind: 'finished', envelope: envelope.envelope };
    case 'error':
      return { kind: 'failed', reason: `agent reported an ${envelope.reason}` };
    case 'invalid':
      return { kind: 'failed', reason: envelope.reason };
    case 'unavailable':
      return { kind: 'failed', reason: `agent said "unavailable", but exited 0 instead of ${String(unavailableExit)}` };
    case 'absent':
      return absent === null
        ? { kind: 'failed', reason: 'agent ended without an envelope' }
        : { kind: 'finished', envelope: absent };
    default:
      return unreachable(envelope);
  }
}
