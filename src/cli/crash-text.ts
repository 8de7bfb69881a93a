/** What a person reads when something was thrown: a bug of giro, or what keeps it from going on. */
import { printable } from '../platform/text.js';
import { troubleOf } from '../platform/trouble.js';

/** Says what was thrown, and what to do about it. */
export function crashText(error: unknown): string {
  const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
  return (
    knownText(error) ?? `giro: this is a bug of giro; the state is saved, and the same command goes on from it\n${text}`
  );
}

/** The same for what is no bug: the repository lacks something or cannot be written, the machine is in trouble; else `null`. */
export function knownText(error: unknown): string | null {
  // By name, so that what reads git is not loaded for it.
  if (error instanceof Error && error.name === 'MissingObject')
    return `giro: the repository lacks a part of its history: ${error.message}\n  in a shallow or partial clone, fetch the rest: git fetch --unshallow; else see: git fsck`;
  if (error instanceof Error && error.name === 'SaveRefused')
    return `giro: ${error.message}\n  nothing was removed; when that is mended, the same command goes on`;
  const trouble = troubleOf(error);
  if (trouble === null) return null;
  return `giro: ${trouble.what}: ${printable(trouble.detail)}\n  ${trouble.hint}, then run the same command again; what was recorded is kept`;
}
