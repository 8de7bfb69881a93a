/** How benchmarks print: the measured ratio beside what must and what should be reached. */

/** One measured line. */
export interface Row {
  readonly what: string;
  /** The two numbers behind the ratio, with units. */
  readonly measured: string;
  readonly ratio: number;
  readonly must?: number;
  readonly goal?: number;
}

/** Prints a line at once, so that a long benchmark shows where it is. */
export function say(text: string): void {
  process.stdout.write(`${text}\n`);
}

/** The middle value. */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((left, right) => left - right);
  const middle = Math.floor(sorted.length / 2);
  const [high = 0, low = high] = [sorted[middle], sorted[middle - 1]];
  return sorted.length % 2 === 1 ? high : (high + low) / 2;
}

/** Prints measured lines as a table. */
export function table(rows: readonly Row[]): void {
  const cells = rows.map((row) => [
    row.what,
    row.measured,
    row.ratio.toFixed(3),
    row.must === undefined ? '' : String(row.must),
    row.goal === undefined ? '' : String(row.goal),
    verdict(row),
  ]);
  const all = [['what', 'measured', 'ratio', 'must', 'goal', ''], ...cells];
  const widths = all[0]?.map((_, column) => Math.max(...all.map((line) => line[column]?.length ?? 0))) ?? [];
  for (const line of all)
    say(
      line
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    );
}

function verdict(row: Row): string {
  if (row.goal !== undefined && row.ratio <= row.goal) return 'goal reached';
  if (row.must === undefined) return '';
  return row.ratio <= row.must ? 'must reached' : 'MISSED';
}
