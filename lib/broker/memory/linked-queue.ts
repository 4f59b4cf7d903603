interface Link {
  readonly id: string;
  before: Link | undefined;
  after: Link | undefined;
}

/**
 * A list of distinct ids. Pushing at either end, popping the front and removing from the middle
 * take constant time.
 */
export class LinkedQueue implements Iterable<string> {
  private readonly links = new Map<string, Link>();
  private front: Link | undefined;
  private back: Link | undefined;
  /** Grows with every change: two equal readings mean that nothing happened in between. */
  changes = 0;

  get size(): number {
    return this.links.size;
  }

  has(id: string): boolean {
    return this.links.has(id);
  }

  pushBack(id: string): void {
    const link: Link = { id, before: this.back, after: undefined };
    if (this.back) this.back.after = link;
    else this.front = link;
    this.back = link;
    this.note(link);
  }

  pushFront(id: string): void {
    const link: Link = { id, before: undefined, after: this.front };
    if (this.front) this.front.before = link;
    else this.back = link;
    this.front = link;
    this.note(link);
  }

  popFront(): string | undefined {
    const first = this.front?.id;
    if (first !== undefined) this.remove(first);
    return first;
  }

  remove(id: string): boolean {
    const link = this.links.get(id);
    if (!link) return false;
    if (link.before) link.before.after = link.after;
    else this.front = link.after;
    if (link.after) link.after.before = link.before;
    else this.back = link.before;
    this.links.delete(id);
    this.changes++;
    return true;
  }

  /** From the front to the back. */
  *[Symbol.iterator](): Iterator<string> {
    for (let link = this.front; link; link = link.after) yield link.id;
  }

  /** Those behind the id, which must be there. */
  *behind(id: string): Iterable<string> {
    for (let link = this.links.get(id)?.after; link; link = link.after) yield link.id;
  }

  private note(link: Link): void {
    this.links.set(link.id, link);
    this.changes++;
  }
}
