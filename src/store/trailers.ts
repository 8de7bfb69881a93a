/** Trailers that mark giro's own commits, so that resume knows them without reading prose. */

/** What an engine commit is. */
export type Checkpoint =
  | 'as-read'
  | 'snapshot'
  | 'import'
  | 'planning'
  | 'plan'
  | 'working'
  | 'judging'
  | 'judged'
  | 'integrated'
  | 'escalated'
  | 'answered'
  | 'stacked'
  | 'validated'
  | 'state';

/** Builds a commit message: subject, body, trailers. */
export function commitMessage(message: {
  readonly subject: string;
  readonly body?: string;
  readonly checkpoint: Checkpoint;
  readonly trailers?: Readonly<Record<string, string>>;
}): string {
  const trailers = { ...message.trailers, 'Giro-Checkpoint': message.checkpoint };
  const lines = Object.entries(trailers).map(([key, value]) => `${key}: ${value}`);
  return [message.subject, ...(message.body === undefined ? [] : ['', message.body]), '', ...lines, ''].join('\n');
}

/** Reads one trailer from the last paragraph of a message. */
export function trailer(message: string, key: string): string | undefined {
  const last = message.trimEnd().split('\n\n').at(-1) ?? '';
  return last
    .split('\n')
    .map((line) => /^([A-Za-z-]+): (.*)$/.exec(line))
    .findLast((match) => match?.[1] === key)?.[2];
}

/** Tells which checkpoint a commit is; `undefined`: a person made it. */
export function checkpointOf(message: string): string | undefined {
  return trailer(message, 'Giro-Checkpoint');
}
