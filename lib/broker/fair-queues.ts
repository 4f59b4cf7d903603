/**
 * The queues whose tasks take turns by their keys (wire/fairness.ts), as far as this process knows. Every process that enqueues to
 * such a queue or serves it is to know it.
 */
export class FairQueues {
  private readonly names = new Set<string>();

  has(queue: string): boolean {
    return this.names.size > 0 && this.names.has(queue);
  }

  all(): readonly string[] {
    return [...this.names];
  }

  add(queue: string): void {
    this.names.add(queue);
  }
}
