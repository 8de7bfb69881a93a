/** What a child process gets to see of giro's own environment: an allow-list, nothing else. */

/** The complete environment of a child. */
export type Environment = Readonly<Record<string, string>>;

const allowed = new Set(['PATH', 'HOME', 'USER', 'LOGNAME', 'SHELL', 'LANG', 'TZ']);
const allowedPrefixes = ['LC_', 'XDG_'];

/** Copies the variables every child may see from giro's own environment, and those named. */
export function childEnvironment(
  own: Readonly<Record<string, string | undefined>>,
  names: readonly string[] = [],
): Environment {
  const named = new Set(names);
  const kept = Object.entries(own).filter(
    (entry): entry is [string, string] => entry[1] !== undefined && (named.has(entry[0]) || isAllowed(entry[0])),
  );
  return Object.fromEntries(kept);
}

function isAllowed(name: string): boolean {
  return allowed.has(name) || allowedPrefixes.some((prefix) => name.startsWith(prefix));
}
