/** Reads the durable record of an Issue on its own, not by the functions that are tested. */

/** One entry of a History. */
export interface Entry {
  readonly heading: string;
  readonly text: string;
  /** Number of an attempt; `null`: something else. */
  readonly attempt: number | null;
  /** Who worked in it. */
  readonly by: string;
  readonly verdict: string | null;
}

/** What an Issue file says. */
export interface FileFacts {
  readonly state: string;
  readonly phase: string | null;
  readonly entries: readonly Entry[];
}

/** Reads an Issue file. */
export function factsOf(text: string): FileFacts {
  const head = text.slice(0, text.indexOf('\n---', 3));
  const told = text.indexOf('\n## History');
  const blocks =
    told < 0
      ? []
      : text
          .slice(told)
          .split(/^(?=### )/m)
          .slice(1);
  return {
    state: /^state: (\S+)$/m.exec(head)?.[1] ?? 'ready',
    phase: /^phase: (\S+)$/m.exec(head)?.[1] ?? null,
    entries: blocks.map(entryOf),
  };
}

function entryOf(text: string): Entry {
  const heading = text.slice(0, text.indexOf('\n'));
  const [, number, by = ''] = /^### Attempt (\d+) · \S+ · (.*)$/.exec(heading) ?? [];
  return {
    heading,
    text,
    attempt: number === undefined ? null : Number(number),
    by,
    verdict: /^verdict: (\S+)$/m.exec(text)?.[1] ?? null,
  };
}

/** The entries since a person answered last. */
export function sinceAnswered(entries: readonly Entry[]): readonly Entry[] {
  return entries.slice(entries.findLastIndex((entry) => entry.heading.startsWith('### Answered')) + 1);
}

/** How often a person answered. */
export function answers(entries: readonly Entry[]): number {
  return entries.filter((entry) => entry.heading.startsWith('### Answered')).length;
}

/** Attempts that use the budget. */
export function counted(entries: readonly Entry[]): readonly Entry[] {
  return sinceAnswered(entries).filter(
    ({ attempt, verdict }) => attempt !== null && verdict !== 'operation' && verdict !== 'stopped',
  );
}
