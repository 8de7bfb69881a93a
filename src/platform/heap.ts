/** How the engine's own memory grows. */
import { setFlagsFromString } from 'node:v8';

/**
 * Makes V8 collect early instead of letting the heap grow with the machine: what a run keeps is small and most of what it
 * makes is garbage at once, while each process that it starts is the slower to start the bigger it is. To be called before
 * much is loaded, since what has grown is not given back.
 */
export function keepHeapSmall(): void {
  // New objects stay within what V8 begins with, a megabyte twice; on a large machine it would become sixteen.
  setFlagsFromString('--semi-space-growth-factor=1');
  // The next full collection is due after little growth.
  setFlagsFromString('--optimize-for-size');
  setFlagsFromString('--heap-growing-percent=20');
  // Only what is really hot is worth the optimizing compiler, whose threads keep megabytes each of what they worked in.
  setFlagsFromString('--interrupt-budget=2000000');
}
