/**
 * Loaded into giro before anything else: notes what of the disk would be left if the power failed now. What a file holds is
 * durable when the file is synced, and a name (new, renamed, removed) when its folder is.
 *
 * GIRO_DISK: a folder for `log`, a line of JSON for each sync, and for copies of what was synced, named by inode.
 */
import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { join } from 'node:path';

const disk = process.env['GIRO_DISK'] ?? '';
const { appendFileSync, closeSync, copyFileSync, fstatSync, fsync, lstatSync, openSync, readdirSync } = fs;
const log = join(disk, 'log');
const paths = new Map();
/** Syncs end in any order; what one saw that began earlier is older. */
let begun = 0;
const newest = new Map();

fs.openSync = function (path, ...rest) {
  const fd = openSync.call(this, path, ...rest);
  paths.set(fd, String(path));
  return fd;
};
fs.closeSync = function (fd) {
  paths.delete(fd);
  closeSync.call(this, fd);
};

/** What it is at this moment; it counts once the sync is over. */
function noted(fd) {
  const path = paths.get(fd);
  if (path === undefined) throw new Error('what is synced was not opened here');
  if (!fstatSync(fd).isDirectory()) {
    const { ino } = fstatSync(fd);
    const copy = join(disk, `${String(ino)}.new`);
    copyFileSync(path, copy);
    return { file: ino, copy };
  }
  const names = readdirSync(path).flatMap((name) => {
    const stats = lstatSync(join(path, name), { throwIfNoEntry: false });
    if (stats === undefined) return [];
    // git syncs what a ref holds before it renames it into place.
    const isRef = stats.isFile() && stats.size < 100 && path.includes('/refs/');
    if (isRef) copyFileSync(join(path, name), join(disk, String(stats.ino)));
    return [[name, stats.ino]];
  });
  return { folder: path, names };
}

fs.fsync = function (fd, done) {
  const what = noted(fd);
  const [key, order] = [what.folder ?? what.file, ++begun];
  fsync.call(this, fd, (error) => {
    if ((error === null || error === undefined) && order > (newest.get(key) ?? 0)) {
      newest.set(key, order);
      if (what.copy !== undefined) fs.renameSync(what.copy, join(disk, String(what.file)));
      appendFileSync(log, `${JSON.stringify(what)}\n`);
    }
    done(error);
  });
};
syncBuiltinESMExports();
