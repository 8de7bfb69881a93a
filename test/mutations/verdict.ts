/** Says whether the tests noticed that a protection was off. Pure. */
import { bystanders, type Protected } from './protections.js';

/** One test that ran, as `file > describe > test`. */
export interface RanTest {
  readonly test: string;
  readonly failed: boolean;
}

/** What one protection came to. */
export interface MutationVerdict {
  /** Tests that must fail, and how many of them did. */
  readonly named: number;
  readonly noticed: number;
  /** Others of the area that failed. */
  readonly further: number;
  /** What is wrong with the protection's tests or its area; none: it is proved. */
  readonly problems: readonly string[];
}

/** Compares what ran without a protection with what its entry says. */
export function judgeMutation({ named, area }: Omit<Protected, 'what'>, ran: readonly RanTest[]): MutationVerdict {
  const isNamed = startsWithOne(named);
  const mayFail = startsWithOne(area);
  const must = ran.filter(({ test }) => isNamed(test));
  const others = ran.filter(({ test, failed }) => failed && !isNamed(test));
  const missing = named.filter((one) => !ran.some(({ test }) => test.startsWith(one)));
  return {
    named: must.length,
    noticed: must.filter(({ failed }) => failed).length,
    further: others.filter(({ test }) => mayFail(test)).length,
    problems: [
      ...(named.length === 0 ? ['no test is named'] : []),
      ...missing.map((test) => `there is no such test: ${test}`),
      ...must.filter(({ failed }) => !failed).map(({ test }) => `passes without it: ${test}`),
      ...others.filter(({ test }) => !mayFail(test)).map(({ test }) => `fails outside of its area: ${test}`),
    ],
  };
}

/** Gives the files to run: those of its tests, and the bystanders. */
export function filesOf({ named, area }: Omit<Protected, 'what'>): readonly string[] {
  const own = [...named, ...area].map((test) => test.split(' > ')[0] ?? '');
  return [...new Set([...own, ...bystanders])];
}

function startsWithOne(texts: readonly string[]): (test: string) => boolean {
  return (test) => texts.some((text) => test.startsWith(text));
}
