export interface Scored {
  readonly id: string;
  readonly score: number;
}

/** A larger chunk is split in two, so that insertion and removal are cheap in a set of any size. */
const CHUNK = 512;

/** Makes UTF-16 code units compare as the code points (and so the UTF-8 bytes) they stand for: surrogates come last. */
const rank = (unit: number): number => (unit >= 0xe000 ? unit - 0x800 : unit >= 0xd800 ? unit + 0x2000 : unit);

/** Orders ids as Redis orders members of one score: by their UTF-8 bytes. */
export function compareIds(a: string, b: string): number {
  const length = Math.min(a.length, b.length);
  for (let index = 0; index < length; index++) {
    const difference = rank(a.charCodeAt(index)) - rank(b.charCodeAt(index));
    if (difference !== 0) return difference;
  }
  return a.length - b.length;
}

const compare = (a: Scored, b: Scored): number => a.score - b.score || compareIds(a.id, b.id);

/** Ids with a score each, in the order of a Redis sorted set: by score, then by id. */
export class SortedSet implements Iterable<Scored> {
  private readonly scores = new Map<string, number>();
  private readonly chunks: Scored[][] = [];
  /** Grows with every change: two equal readings mean that nothing happened in between. */
  changes = 0;

  get size(): number {
    return this.scores.size;
  }

  score(id: string): number | undefined {
    return this.scores.get(id);
  }

  /** The entry with the lowest score. */
  first(): Scored | undefined {
    return this.chunks[0]?.[0];
  }

  /** The entry with the highest score. */
  last(): Scored | undefined {
    return this.chunks.at(-1)?.at(-1);
  }

  /** Adds the id or gives it another score. */
  set(id: string, score: number): void {
    this.delete(id);
    const entry: Scored = { id, score };
    const at = this.chunkOf(entry);
    const chunk = this.chunks[at];
    if (!chunk) this.chunks.push([entry]);
    else {
      chunk.splice(position(chunk, entry), 0, entry);
      if (chunk.length > CHUNK) this.chunks.splice(at + 1, 0, chunk.splice(CHUNK / 2));
    }
    this.scores.set(id, score);
    this.changes++;
  }

  delete(id: string): boolean {
    const score = this.scores.get(id);
    if (score === undefined) return false;
    const entry: Scored = { id, score };
    const at = this.chunkOf(entry);
    const chunk = this.chunks[at] ?? [];
    chunk.splice(position(chunk, entry), 1);
    if (chunk.length === 0) this.chunks.splice(at, 1);
    this.scores.delete(id);
    this.changes++;
    return true;
  }

  /** Up to `limit` entries with a score of at most `highest`, lowest first. */
  upTo(highest: number, limit = Infinity): Scored[] {
    const found: Scored[] = [];
    for (const entry of this) {
      if (found.length >= limit || entry.score > highest) break;
      found.push(entry);
    }
    return found;
  }

  *[Symbol.iterator](): Iterator<Scored> {
    for (const chunk of this.chunks) yield* chunk;
  }

  /** What comes after this entry, whether or not it is (still) there. */
  *after(entry: Scored): Iterable<Scored> {
    for (let at = this.chunkOf(entry); at < this.chunks.length; at++) {
      for (const other of this.chunks[at] ?? []) if (compare(other, entry) > 0) yield other;
    }
  }

  /** From the highest to the lowest; what comes before this entry, whether or not it is (still) there. */
  *backwards(entry?: Scored): Iterable<Scored> {
    for (let at = entry ? this.chunkOf(entry) : this.chunks.length - 1; at >= 0; at--) {
      for (const other of this.chunks[at]?.toReversed() ?? []) if (!entry || compare(other, entry) < 0) yield other;
    }
  }

  /** The first chunk whose last entry does not come before this one; the last chunk for an entry beyond all. */
  private chunkOf(entry: Scored): number {
    let low = 0;
    let high = this.chunks.length - 1;
    while (low < high) {
      const middle = (low + high) >> 1;
      const last = this.chunks[middle]?.at(-1);
      if (last && compare(last, entry) < 0) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

/** The index of the entry in its chunk, or where it would have to be inserted. */
function position(chunk: readonly Scored[], entry: Scored): number {
  let low = 0;
  let high = chunk.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    const other = chunk[middle];
    if (other && compare(other, entry) < 0) low = middle + 1;
    else high = middle;
  }
  return low;
}
