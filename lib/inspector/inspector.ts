import type { InspectorBroker } from '../broker/broker.js';
import type { Clock } from '../clock.js';
import { InvalidOptionError } from '../errors.js';
import { toTaskInfo, type TaskInfo } from '../task/info.js';
import { describe, isBlank } from '../validation.js';

/** Looks at queues and tasks, and steers queues (asynq's Inspector). Works in a process without a server. */
export class AsynqInspector {
  constructor(private readonly broker: InspectorBroker & { readonly clock: Clock }) {}

  /** Names of all queues that have ever had a task, unsorted. */
  queues(): Promise<string[]> {
    return this.broker.queues();
  }

  /**
   * A task as it stands now; `undefined` when the queue has no such task, for example because it succeeded without a retention.
   *
   * @throws InvalidOptionError for a blank queue or id; BrokerUnavailableError
   */
  async getTaskInfo(queue: string, id: string): Promise<TaskInfo | undefined> {
    requireName(queue, 'queue name');
    requireName(id, 'task ID');
    const stored = await this.broker.getTask(queue, id);
    if (!stored) return undefined;
    const { message, state, result } = stored;
    const score = stored.nextProcessAt === undefined ? undefined : stored.nextProcessAt * 1000;
    return toTaskInfo(message, { state, result, nextProcessAt: state === 'pending' ? this.broker.clock.now() : score });
  }

  /** No server takes tasks of the queue until `unpauseQueue`. Answers whether this call changed anything. */
  async pauseQueue(queue: string): Promise<boolean> {
    requireName(queue, 'queue name');
    return this.broker.pauseQueue(queue);
  }

  /** Answers whether the queue was paused. */
  async unpauseQueue(queue: string): Promise<boolean> {
    requireName(queue, 'queue name');
    return this.broker.resumeQueue(queue);
  }
}

function requireName(value: unknown, what: string): void {
  if (typeof value === 'string' && !isBlank(value)) return;
  throw new InvalidOptionError(`${what} must contain one or more characters, not ${describe(value)}`);
}
