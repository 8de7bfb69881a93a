/** The trees that the entries of an index make up, which git keeps behind them: with their names nothing is hashed anew. */

/** One tree. */
export interface IndexTree {
  readonly name: string;
  /** How many entries are below it; -1: its object is not known. */
  readonly count: number;
  readonly oid: string;
  readonly below: readonly IndexTree[];
}

const signature = 'TREE';

/** Reads what stands behind the entries of an index; null when its trees are not known or anything else must be understood. */
export function parseTrees(data: Buffer, width: number): IndexTree | null {
  let trees: IndexTree | null = null;
  for (let at = 0; at < data.length;) {
    if (at + 8 > data.length) return null;
    const name = data.toString('latin1', at, at + 4);
    const end = at + 8 + data.readUInt32BE(at + 4);
    // Those that may be ignored begin with a capital letter.
    if (end > data.length || !/^[A-Z]/.test(name)) return null;
    if (name === signature) trees = new Reader(data.subarray(at + 8, end), width).tree();
    at = end;
  }
  return trees;
}

/** The trees as they stand behind the entries. */
export function treeExtension(trees: IndexTree): Buffer {
  const parts: Buffer[] = [];
  const visit = ({ name, count, oid, below }: IndexTree): void => {
    parts.push(Buffer.from(`${name}\0${String(count)} ${String(below.length)}\n`, 'latin1'));
    if (count >= 0) parts.push(Buffer.from(oid, 'hex'));
    below.forEach(visit);
  };
  visit(trees);
  const head = Buffer.alloc(8);
  head.write(signature, 'latin1');
  head.writeUInt32BE(
    parts.reduce((size, { length }) => size + length, 0),
    4,
  );
  return Buffer.concat([head, ...parts]);
}

class Reader {
  readonly #data: Buffer;
  readonly #width: number;
  #at = 0;

  constructor(data: Buffer, width: number) {
    this.#data = data;
    this.#width = width;
  }

  tree(): IndexTree | null {
    const data = this.#data;
    const end = data.indexOf(0, this.#at);
    const line = data.indexOf(0x0a, end);
    if (end < 0 || line < 0) return null;
    const name = data.toString('latin1', this.#at, end);
    const [count = Number.NaN, size = Number.NaN] = data
      .toString('latin1', end + 1, line)
      .split(' ')
      .map(Number);
    if (!Number.isInteger(count) || !Number.isInteger(size)) return null;
    this.#at = line + 1;
    const oid = count < 0 ? '' : data.toString('hex', this.#at, (this.#at += this.#width));
    if (this.#at > data.length) return null;
    const below: IndexTree[] = [];
    for (let seen = 0; seen < size; seen += 1) {
      const tree = this.tree();
      if (tree === null) return null;
      below.push(tree);
    }
    return { name, count, oid, below };
  }
}
