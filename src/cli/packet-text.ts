/** A packet as a person reads it on a terminal or in an editor. */
import { historyOf } from '../config/splice.js';
import type { Issue, Oid } from '../issue.js';
import { readPacket, type Packet } from '../packet.js';
import { printable } from '../platform/text.js';
import { specsFolder, type Spec } from '../spec.js';
import { closings, readHistory, type HistoryEntry } from '../store/history.js';
import { newestRecord, readIssueText } from '../store/read.js';
import { issueRef } from '../store/refs.js';
import type { Git } from '../worktree/git-types.js';

/** Gives the packet of an Issue or a Spec that asks; `null` when it has none. */
export async function packetOf(
  git: Git,
  of: { readonly tip: Oid; readonly spec: Pick<Spec, 'slug'>; readonly issue: Pick<Issue, 'id' | 'path'> | null },
): Promise<Packet | null> {
  const { tip, spec, issue } = of;
  const path = issue?.path ?? `${specsFolder}/${spec.slug}/SPEC.md`;
  const entries = await entriesAt(git, tip, path);
  const branch = issue === null ? null : await git.readRef(issueRef(spec.slug, issue.id));
  const record = branch === null ? null : (await newestRecord(git, branch)).record;
  const own = record === null ? [] : await entriesAt(git, record, path);
  // Answered or landed since: the branch does not know it.
  return newestPacket(closings(own) >= closings(entries) && own.length > entries.length ? own : entries);
}

/** Gives the newest packet of a History, unless somebody answered it. */
function newestPacket(entries: readonly HistoryEntry[]): Packet | null {
  const packet = entries.findLastIndex((entry) => entry.kind === 'escalated');
  const text = entries[packet]?.text;
  const isAnswered = entries
    .slice(packet + 1)
    .some((entry) => entry.kind === 'answered' || entry.kind === 'integrated');
  return text === undefined || isAnswered ? null : readPacket(text);
}

async function entriesAt(git: Git, commit: Oid, path: string): Promise<readonly HistoryEntry[]> {
  const text = await readIssueText(git, commit, path);
  return text === null ? [] : readHistory(historyOf(text));
}

/** Lays a packet out: what was asked, what was tried, what is known, the question, and the ways on. */
export function packetText(packet: Packet): string {
  const lines = [
    `asked for  ${packet.askedFor}`,
    `tried      ${packet.tried}`,
    ...packet.attempts.map((line) => `           ${line}`),
    ...(packet.changed === null ? [] : [`changed    ${packet.changed}`]),
    ...(packet.see === null ? [] : [`           ${packet.see}`]),
    ...packet.evidence.flatMap(({ id, text, tail }) => [
      `evidence   ${id === null ? '' : `[${id}] `}${text}`,
      ...tail.map((line) => `             | ${line}`),
    ]),
    ...(packet.more === 0 ? [] : [`           and ${String(packet.more)} more`]),
    ...packet.logs.map((log, index) => `${index === 0 ? 'logs       ' : '           '}${log}`),
    '',
    `QUESTION   ${packet.question}`,
    '',
    ...packet.options.flatMap(({ act, leadsTo }, index) => [
      `${index === 0 ? 'answer     ' : '           '}${act}`,
      ...(leadsTo === '' ? [] : [`             ${leadsTo}`]),
    ]),
    `then       ${packet.next}`,
  ];
  return lines.map(printable).join('\n');
}
