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
  // While a Spec is read nearly all that is made is kept, and each full collection would be for nothing.
  setFlagsFromString('--heap-growing-percent=100');
  setFlagsFromString('--optimize-for-size');
  // Only what is really hot is worth the optimizing compiler, whose threads keep megabytes each of what they worked in.
  setFlagsFromString('--interrupt-budget=2000000');
}

/** From now on the next full collection is due after little growth: everything is read, and what is made is garbage. */
export function keepHeapAsItIs(): void {
  setFlagsFromString('--heap-growing-percent=20');
}
