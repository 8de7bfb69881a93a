/** The findings of a judge, as everybody else has them: bounded, on one line, and marked where they point at nothing. */
import type { JudgeFinding } from '../drivers/judge.js';
import type { Finding } from '../issue.js';
import { printable } from '../platform/text.js';
import type { Brief } from './judging.js';

const longestMessage = 1000;

/** Takes over what a judge found. A fail without a reason is a fail all the same. */
export async function judgeFindings(
  gate: string,
  said: readonly JudgeFinding[],
  brief: Pick<Brief, 'linesOf'>,
): Promise<readonly Finding[]> {
  if (said.length === 0) return [{ gate, message: `gate ${gate} failed, and its judge gave no reason` }];
  return Promise.all(said.map((finding) => findingOf(gate, finding, brief)));
}

async function findingOf(
  gate: string,
  { message, file, line, severity }: JudgeFinding,
  brief: Pick<Brief, 'linesOf'>,
): Promise<Finding> {
  const weight = severity === null || severity === undefined ? '' : `${oneLine(severity, 20)}: `;
  const what = `${weight}${oneLine(message, longestMessage)}`;
  if (file === null || file === undefined || file.trim() === '') return { gate, message: what };
  const path = oneLine(file.replace(/^\.\//, ''), 300);
  const lines = await brief.linesOf(path);
  const at = { gate, file: path, ...(line === null || line === undefined ? {} : { line }) };
  if (lines === null) return { ...at, message: `${what} (there is no such file)` };
  const outside = line !== null && line !== undefined && line > lines;
  return { ...at, message: outside ? `${what} (the file has only ${String(lines)} lines)` : what };
}

function oneLine(text: string, longest: number): string {
  const line = printable(text.replace(/\s+/g, ' ').trim());
  return line.length > longest ? `${line.slice(0, longest)}…` : line;
}
