import type { Settlement } from '../../broker.js';
import { packTexts } from './packed-texts.js';

/** Bytes of bits per member, at most: else the script finds them one by one. */
const MOST_BYTES_PER_MEMBER = 4;
const HIGHEST_BIT = 128;
const ZERO = 48;

/** The members of one batch, by their numbers. */
class Members {
  private readonly numbers: number[] = [];
  private first = Infinity;
  private last = -1;

  constructor(readonly batch: string) {}

  /** @returns whether the id is that of a member of the batch */
  add(id: string): boolean {
    let number = 0;
    for (let i = this.batch.length + 1; i < id.length; i++) {
      const digit = id.charCodeAt(i) - ZERO;
      if (!(digit >= 0 && digit <= 9)) return false;
      number = number * 10 + digit;
    }
    if (number > Number.MAX_SAFE_INTEGER) return false;
    if (number < this.first) this.first = number;
    if (number > this.last) this.last = number;
    this.numbers.push(number);
    return true;
  }

  /** Name, count, first byte and bits from there; undefined when they are far from each other. */
  pack(): Buffer[] | undefined {
    const from = Math.floor(this.first / 8);
    const size = Math.floor(this.last / 8) - from + 1;
    const count = this.numbers.length;
    if (size > MOST_BYTES_PER_MEMBER * count) return undefined;
    const bits = Buffer.alloc(size);
    for (const number of this.numbers) bits[Math.floor(number / 8) - from]! |= HIGHEST_BIT >> (number % 8);
    return [Buffer.from(this.batch), Buffer.from(String(count)), Buffer.from(String(from)), bits];
  }
}

/**
 * The members of batches that have just succeeded, for exchange.lua with links: their bits, as lua/shared/parts.lua has them. Empty
 * when there are none, or when the script has to find them.
 */
export function encodeSettledMembers(settle: readonly Settlement[]): Buffer | '' {
  const groups: Members[] = [];
  let current: Members | undefined;
  for (const item of settle) {
    if (item.kind !== 'done' || item.member === undefined || item.revoked) continue;
    const { member, lease } = item;
    if (current?.batch !== member) {
      current = groups.find(({ batch }) => batch === member);
      if (!current) groups.push((current = new Members(member)));
    }
    if (!current.add(lease.id)) return '';
  }
  const packed: Buffer[] = [];
  for (const group of groups) {
    const parts = group.pack();
    if (!parts) return '';
    packed.push(...parts);
  }
  return packed.length > 0 ? packTexts(packed) : '';
}
