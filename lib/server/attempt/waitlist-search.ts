import type { LimitingRole } from '../../broker/limiting.js';

/** Pages of names that one pass reads of a queue. */
const PAGES_PER_PASS = 10;

/** What is known here of waitlists. */
export interface KnownWaitlists {
  /** Those that are not of a key. */
  readonly names: readonly string[];
  /** Whether it is of a key of which nothing is known here yet. */
  isNew(waitlist: string): boolean;
}

/**
 * Finds waitlists in which tasks wait, though nobody here may know of them: all where there are few, a part of them in each pass where there
 * are many. Those that are not of a key, of which there are never many, are all found in each pass.
 */
export class WaitlistSearch {
  /** By queue: where the pass before has stopped. */
  private readonly cursors = new Map<string, string>();

  constructor(private readonly limiting: Pick<LimitingRole, 'findWaitlists' | 'usedWaitlists'>) {}

  /** @param room how many keys may become known in this pass, about; it is counted down */
  async find(queue: string, known: KnownWaitlists, room: { left: number }): Promise<ReadonlySet<string>> {
    const from = this.cursors.get(queue) ?? '';
    const found = new Set<string>();
    let cursor = from;
    let isAll = false;
    for (let pages = 0; pages < PAGES_PER_PASS && room.left > 0 && !isAll; pages++) {
      const page = await this.limiting.findWaitlists(queue, cursor);
      for (const name of page.names) {
        if (!found.has(name) && known.isNew(name)) room.left -= 1;
        found.add(name);
      }
      cursor = page.cursor;
      isAll = cursor === '';
    }
    if (isAll) this.cursors.delete(queue);
    else this.cursors.set(queue, cursor);
    if (isAll && from === '') return found;
    for (const name of await this.limiting.usedWaitlists(queue, known.names)) found.add(name);
    return found;
  }
}
