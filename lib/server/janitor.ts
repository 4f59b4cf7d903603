import type { MaintenanceBroker } from '../broker/broker.js';
import type { Lanes } from './lanes.js';

export interface JanitorOptions {
  readonly broker: MaintenanceBroker;
  readonly lanes: Lanes;
  /** Milliseconds between two passes. */
  readonly interval: number;
  /** Tasks deleted in one step. */
  readonly batchSize: number;
}

/** Deletes completed tasks whose retention is over, and archived ones that are too old or too many, in small steps. */
export class Janitor {
  constructor(private readonly options: JanitorOptions) {}

  async runOnce(): Promise<number> {
    const results = await Promise.allSettled(this.options.lanes.queues().map((queue) => this.clean(queue)));
    const failure = results.find((result) => result.status === 'rejected');
    if (failure) throw failure.reason;
    return this.options.interval;
  }

  private async clean(queue: string): Promise<void> {
    const { broker, batchSize } = this.options;
    while ((await broker.deleteExpiredCompleted(queue, batchSize)) >= batchSize);
    while ((await broker.trimArchived(queue, batchSize)) >= batchSize);
  }
}
