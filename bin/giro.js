#!/usr/bin/env node
// Runs before anything is known about the machine: this file keeps to what every Node with ES modules can read.
import { existsSync } from 'fs';
import module from 'module';
import { fileURLToPath } from 'url';

const [major, minor] = process.versions.node.split('.').map(Number);
const main = new URL('../dist/main.js', import.meta.url);

if (major < 20 || (major === 20 && minor < 19)) {
  console.error(
    `giro needs Node 20.19 or newer; this is ${process.version} (${process.execPath}).\n` +
      'Install a newer one from https://nodejs.org and run the same command again.',
  );
  process.exitCode = 1;
} else if (!existsSync(main)) {
  console.error(`giro is not built: ${fileURLToPath(main)} is missing.\nIn a clone of its repository run: npm start`);
  process.exitCode = 1;
} else {
  // Node 22 keeps compiled code between runs; Node 20 has no such function.
  if (module.enableCompileCache) module.enableCompileCache();
  await import(main.href);
}
