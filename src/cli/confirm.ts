/** Asks a person on a terminal whether something is meant. */
import { createInterface } from 'node:readline/promises';

/** Whether the answer is `y` or `yes`; the end of the input and Ctrl+C are a no. */
export async function confirm(question: string): Promise<boolean> {
  const asking = createInterface({ input: process.stdin, output: process.stdout });
  try {
    const closed = new Promise<string>((done) => {
      asking.once('close', () => {
        done('');
      });
    });
    const answer = await Promise.race([asking.question(question), closed]);
    return /^y(?:es)?$/i.test(answer.trim());
  } finally {
    asking.close();
  }
}
