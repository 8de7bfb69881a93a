/** Hashes of files that may be large. */
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';

/** SHA-256 of a file in hexadecimal, read piece by piece; `null` when it cannot be read. */
export async function hashFile(path: string): Promise<string | null> {
  const hash = createHash('sha256');
  try {
    for await (const piece of createReadStream(path)) hash.update(Buffer.isBuffer(piece) ? piece : String(piece));
  } catch (error) {
    if (error instanceof Error && 'code' in error) return null;
    throw error;
  }
  return hash.digest('hex');
}
