/**
 * The packet of an escalation: what a person needs to answer in a minute. Written into History line by line, and read
 * back from there for whoever shows it. Pure.
 */

/** How foreign text stands in a packet: indented, so that it cannot pass for a line of giro's. */
export const packetIndent = '      ';

/** One reason, with the end of the output that shows it. */
export interface Evidence {
  /** For `giro answer --accept`; `null`: there is no verdict that could be accepted. */
  readonly id: string | null;
  readonly text: string;
  readonly tail: readonly string[];
}

/** One way to answer. */
export interface PacketOption {
  /** What to type or to do. */
  readonly act: string;
  readonly leadsTo: string;
}

/** Everything that a packet says. */
export interface Packet {
  readonly askedFor: string;
  /** How much was tried, and why it was stopped. */
  readonly tried: string;
  /** One line for each attempt: verdict, size, duration, cost. */
  readonly attempts: readonly string[];
  readonly evidence: readonly Evidence[];
  /** Findings beyond those. */
  readonly more: number;
  /** What the work changes, as a diff stat; `null`: nothing. */
  readonly changed: string | null;
  /** How to read the work; `null`: there is none. */
  readonly see: string | null;
  readonly logs: readonly string[];
  readonly question: string;
  readonly options: readonly PacketOption[];
  /** The command that goes on after an answer. */
  readonly next: string;
}

/** Writes a packet as lines. */
export function packetLines(packet: Packet): readonly string[] {
  return [
    `asked for: ${packet.askedFor}`,
    `tried: ${packet.tried}`,
    ...packet.attempts.map((line) => `attempt ${line}`),
    ...packet.evidence.flatMap(({ id, text, tail }) => [
      `evidence${id === null ? '' : ` [${id}]`}: ${text}`,
      ...tail.map((line) => `${packetIndent}${line}`),
    ]),
    ...(packet.more === 0 ? [] : [`more: ${String(packet.more)}`]),
    ...(packet.changed === null ? [] : [`changed: ${packet.changed}`]),
    ...(packet.see === null ? [] : [`see: ${packet.see}`]),
    ...packet.logs.map((log) => `log: ${log}`),
    `question: ${packet.question}`,
    ...packet.options.map(({ act, leadsTo }) => `option: ${act}${arrow}${leadsTo}`),
    `then: ${packet.next}`,
  ];
}

const arrow = ' -> ';

/** Reads a packet back from the lines of its entry; what an older packet did not say is empty. */
export function readPacket(text: string): Packet {
  const lines = text.split('\n');
  const all = (key: string): readonly string[] =>
    lines.flatMap((line) => (line.startsWith(`${key}: `) ? [line.slice(key.length + 2)] : []));
  const one = (key: string): string | null => all(key)[0] ?? null;
  return {
    askedFor: one('asked for') ?? '',
    tried: one('tried') ?? '',
    attempts: lines.flatMap((line) => (/^attempt \d+: /.test(line) ? [line.slice('attempt '.length)] : [])),
    evidence: readEvidence(lines),
    more: Number(one('more') ?? 0),
    changed: one('changed'),
    see: one('see'),
    logs: all('log'),
    question: one('question') ?? '',
    options: all('option').map(readOption),
    next: one('then') ?? '',
  };
}

function readEvidence(lines: readonly string[]): readonly Evidence[] {
  return lines.flatMap((line, at): readonly Evidence[] => {
    const [, id, text] = /^evidence(?: \[([0-9a-f]{8})\])?: (.*)$/.exec(line) ?? [];
    if (text === undefined) return [];
    const rest = lines.slice(at + 1);
    const end = rest.findIndex((below) => !below.startsWith(packetIndent));
    const tail = rest.slice(0, end < 0 ? undefined : end).map((below) => below.slice(packetIndent.length));
    return [{ id: id ?? null, text, tail }];
  });
}

function readOption(text: string): PacketOption {
  const at = text.indexOf(arrow);
  return at < 0 ? { act: text, leadsTo: '' } : { act: text.slice(0, at), leadsTo: text.slice(at + arrow.length) };
}
