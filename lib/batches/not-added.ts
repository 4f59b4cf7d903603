import type { NotAdded } from '../errors.js';

/** After so many refused payloads the source is not read further: its rows are wrong, not one of them. */
const MAX_REFUSED = 1_000;

interface Range {
  from: number;
  to: number;
  readonly error: Error;
}

/** The payloads of one call that were not added: neighbours with the same error are one range. */
export class NotAddedList {
  private readonly ranges: Range[] = [];
  private last: Range | undefined;
  private refused = 0;
  size = 0;

  /** Too many payloads were refused, one by one. */
  get isFull(): boolean {
    return this.refused >= MAX_REFUSED;
  }

  /** A payload is wrong in itself. */
  refuse(index: number, error: Error): void {
    this.refused += 1;
    this.note(index, error);
  }

  note(index: number, error: Error): void {
    this.size += 1;
    const { last } = this;
    if (last?.to === index && last.error === error) last.to += 1;
    else this.ranges.push((this.last = { from: index, to: index + 1, error }));
  }

  inOrder(): readonly NotAdded[] {
    return this.ranges.sort((a, b) => a.from - b.from);
  }
}
