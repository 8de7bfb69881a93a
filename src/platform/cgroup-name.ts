/** The names of giro's cgroups: of a run its mark, of a call in it what it is for. What is in them is known by that alone. */
import type { Environment } from './environment.js';
import { formatMark, markVariable, parseMark, type RunMark } from './mark.js';

const prefix = 'giro,';
const told = ['GIRO_ROLE', 'GIRO_GATE', 'GIRO_ISSUE', 'GIRO_ATTEMPT'];

/** Names the cgroup of a run. */
export function runGroupName(mark: RunMark): string {
  return prefix + formatMark(mark).replaceAll('/', ',');
}

/** Reads the name of a cgroup of a run; `null`: it is none. */
export function parseRunGroupName(name: string): RunMark | null {
  return name.startsWith(prefix) ? parseMark(name.slice(prefix.length).replaceAll(',', '/')) : null;
}

/** Names the cgroup of a call, by what giro tells it in its environment. */
export function callGroupName(number: number, environment: Environment): string {
  const words = told.flatMap((name) => {
    const value = environment[name];
    return value === undefined ? [] : [`${name}=${encodeURIComponent(value)}`];
  });
  return [String(number), ...words].join(',').slice(0, longestName);
}

/** The longest name of a folder, less than what Linux allows. */
const longestName = 250;

/** What a process is in, as `/proc/<pid>/cgroup` tells: the mark of the run, and what it was started with. */
export function membershipOf(text: string): readonly { readonly mark: RunMark; readonly given: Environment }[] {
  if (!text.includes(`/${prefix}`)) return [];
  const found = new Map<string, { readonly mark: RunMark; readonly given: Environment }>();
  for (const line of text.split('\n')) {
    const parts = line.slice(line.indexOf('/')).split('/');
    for (const [at, part] of parts.entries()) {
      const mark = parseRunGroupName(part);
      if (mark === null || found.has(mark.nonce)) continue;
      found.set(mark.nonce, { mark, given: { [markVariable]: formatMark(mark), ...givenBy(parts[at + 1] ?? '') } });
    }
  }
  return [...found.values()];
}

function givenBy(name: string): Environment {
  const words = name.split(',').flatMap((word): [string, string][] => {
    const [, variable, value] = /^(GIRO_[A-Z]+)=([\w.!~*'()%-]*)$/.exec(word) ?? [];
    return variable === undefined || value === undefined || !told.includes(variable)
      ? []
      : [[variable, decoded(value)]];
  });
  return Object.fromEntries(words);
}

function decoded(value: string): string {
  try {
    return decodeURIComponent(value);
  } catch {
    return value; // Cut off.
  }
}
