/** Whether a program can be started, as far as that can be told beforehand. */
import { accessSync, closeSync, constants, openSync, readSync, statSync } from 'node:fs';
import { resolve } from 'node:path';
import type { Environment } from './environment.js';

/** Tells whether the program is there and may be run, and so is what its first line names. */
export function isStartable(
  program: string,
  { cwd, env }: { readonly cwd: string; readonly env: Environment },
): boolean {
  // A shell would take these for its own.
  if (program.startsWith('-') || !Object.keys(env).every((name) => isVariable.test(name))) return false;
  const places = program.includes('/')
    ? [program]
    : (env['PATH'] ?? '').split(':').map((folder) => `${folder}/${program}`);
  const found = places.map((place) => resolve(cwd, place)).find(isExecutable);
  if (found === undefined) return false;
  const interpreter = interpreterOf(found);
  return interpreter === null || isExecutable(interpreter);
}

/** Others do not get through a shell. */
const isVariable = /^[A-Za-z_][A-Za-z0-9_]*$/;

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}

function interpreterOf(path: string): string | null {
  try {
    const file = openSync(path, 'r');
    try {
      const bytes = Buffer.alloc(256);
      const read = readSync(file, bytes, 0, bytes.length, 0);
      return /^#![ \t]*([^\s]+)/.exec(bytes.toString('latin1', 0, read))?.[1] ?? null;
    } finally {
      closeSync(file);
    }
  } catch {
    return null; // It may be run without being read.
  }
}
