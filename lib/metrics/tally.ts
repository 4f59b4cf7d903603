import type { Sample } from './sample.js';

/** Counters by labels, for events that are not frequent. */
export class Tally {
  private readonly counts = new Map<string, { readonly labels: Readonly<Record<string, string>>; value: number }>();

  /** @param labels always the same names, in the same order */
  add(labels: Readonly<Record<string, string>>, amount = 1): void {
    if (amount === 0) return;
    const key = Object.values(labels).join('\0');
    const known = this.counts.get(key);
    if (known) known.value += amount;
    else this.counts.set(key, { labels, value: amount });
  }

  samples(): Iterable<Sample> {
    return this.counts.values();
  }
}
