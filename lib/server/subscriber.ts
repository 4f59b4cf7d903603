import type { MonitoringBroker } from '../broker/broker.js';
import { TaskCanceledError } from '../errors.js';
import type { ActiveTask } from './active-task.js';
import type { Lanes } from './lanes.js';

export interface SubscriberOptions {
  readonly broker: MonitoringBroker;
  readonly lanes: Lanes;
  readonly cancel: (task: ActiveTask, reason: TaskCanceledError) => void;
}

/** Listens for cancellations; a message names only an id, so tasks of that id in every queue are meant. */
export class Subscriber {
  private unsubscribe: (() => Promise<void>) | undefined;
  private closed = false;

  constructor(private readonly options: SubscriberOptions) {}

  /** Subscribes; the loop tries again when that fails, and is done when it has worked. */
  async runOnce(): Promise<number> {
    this.unsubscribe ??= await this.options.broker.subscribeCancellations((id) => this.cancel(id));
    if (this.closed) await this.close(); // while it was subscribing
    return Infinity;
  }

  async close(): Promise<void> {
    this.closed = true;
    await this.unsubscribe?.();
    this.unsubscribe = undefined;
  }

  private cancel(id: string): void {
    for (const task of [...this.options.lanes.held()]) {
      if (task.id === id) this.options.cancel(task, new TaskCanceledError());
    }
  }
}
