import type { CancellationRole } from '../../broker/cancellation.js';

/** Subscribes to the messages of cancellations. */
export class Subscriber {
  private unsubscribe: (() => Promise<void>) | undefined;
  private closed = false;

  constructor(
    private readonly broker: Pick<CancellationRole, 'subscribeCancellations'>,
    private readonly onCancel: (id: string) => void,
  ) {}

  /** Subscribes. The loop tries again after a failure, and ends after a success. */
  async runOnce(): Promise<number> {
    this.unsubscribe ??= await this.broker.subscribeCancellations(this.onCancel);
    if (this.closed) await this.close(); // closed while it subscribed
    return Infinity;
  }

  async close(): Promise<void> {
    this.closed = true;
    await this.unsubscribe?.();
    this.unsubscribe = undefined;
  }
}
