import type { CancellationRole } from '../../broker/cancellation.js';

/** Listens for cancellations. */
export class Subscriber {
  private unsubscribe: (() => Promise<void>) | undefined;
  private closed = false;

  constructor(
    private readonly broker: Pick<CancellationRole, 'subscribeCancellations'>,
    private readonly onCancel: (id: string) => void,
  ) {}

  /** Subscribes; the loop tries again when that fails, and is done when it has worked. */
  async runOnce(): Promise<number> {
    this.unsubscribe ??= await this.broker.subscribeCancellations(this.onCancel);
    if (this.closed) await this.close(); // while it was subscribing
    return Infinity;
  }

  async close(): Promise<void> {
    this.closed = true;
    await this.unsubscribe?.();
    this.unsubscribe = undefined;
  }
}
