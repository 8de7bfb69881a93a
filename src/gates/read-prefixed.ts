/** The lines of runners that stand behind a prefix, as task runners print those of several packages together. Pure. */

/** Each begins a line and ends before the runner's own text. */
const prefixes: readonly RegExp[] = [
  // concurrently: `[web] `; yarn workspaces: `[@scope/web]: `
  /^(\[[^\]\s]+\]:?)(?: |$)/,
  // docker compose: `web-1  | `
  /^([\w@./-]+ *\|)(?: |$)/,
  // pnpm -r: `packages/web test: `
  /^([\w@./-]+ [\w.:-]+:)(?: |$)/,
  // turbo: `web:test: `; lerna: `@scope/web: `
  /^([\w@./#-]+(?::[\w@./#-]+)*:)(?: |$)/,
];

/** Sorts lines by their prefix, without it; what has none is left out. A runner prints more than one line. */
export function linesByPrefix(lines: readonly string[]): ReadonlyMap<string, readonly string[]> {
  const found = new Map<string, string[]>();
  for (const line of lines) {
    for (const pattern of prefixes) {
      const match = pattern.exec(line);
      const prefix = match?.[1];
      if (match === null || prefix === undefined) continue;
      const name = prefix.replace(/ *[|:]$/, '');
      const own = found.get(name) ?? [];
      own.push(line.slice(match[0].length));
      found.set(name, own);
      break;
    }
  }
  return new Map([...found].filter(([, own]) => own.length > 1));
}
