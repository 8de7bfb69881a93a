/** Names of runs: their time and a few random digits. */
import { randomBytes } from 'node:crypto';
import { systemClock } from '../platform/clock.js';

/** Makes the name of a new run, such as `20261130t221405z-1a2b3c`. */
export function newRunId(): string {
  const time = systemClock
    .iso()
    .replace(/[-:]|\.\d+/g, '')
    .toLowerCase();
  return `${time}-${randomBytes(3).toString('hex')}`;
}
