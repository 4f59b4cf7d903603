import type { EnqueueRequest } from '../broker/broker.js';
import type { Full } from '../broker/enqueue-request.js';
import type { Caused, LinksRole, WatchRequest } from '../broker/links.js';
import { PrerequisiteNotFoundError } from '../errors.js';
import type { Relay } from '../links/relay.js';
import { type PreparedLinks, tasksBefore } from './linked-task.js';
import type { BoundedProducing, EnqueueReply } from './producing.js';

/** The most prerequisites of one call: bounds the time the script holds Redis. */
const MAX_WATCHES = 500;

/** A prerequisite of one of several tasks. */
interface Watch {
  readonly owner: number;
  readonly request: WatchRequest;
}

/**
 * Enqueues tasks with links. A task that waits for single tasks is registered with them first: what
 * dies in between leaves a watcher without a task, which is harmless. The other order could leave a
 * task that nobody releases.
 */
export class LinkedProducer implements BoundedProducing {
  constructor(
    /** Rows of an outbox have no bound. */
    private readonly links: Pick<LinksRole, 'enqueue' | 'watch'> & Partial<Pick<LinksRole, 'enqueueBounded'>>,
    private readonly relay: Pick<Relay, 'carry'>,
  ) {}

  /** @param requests as `linked` has made them */
  enqueue(queue: string, requests: readonly EnqueueRequest[]): Promise<EnqueueReply[]> {
    return this.create(requests, (accepted) => this.links.enqueue(queue, accepted));
  }

  enqueueBounded(
    queue: string,
    requests: readonly EnqueueRequest[],
    maxPending: number,
  ): Promise<(EnqueueReply | Full)[]> {
    return this.create(requests, (accepted) => this.links.enqueueBounded!(queue, accepted, maxPending));
  }

  private async create<Status>(
    requests: readonly EnqueueRequest[],
    send: (accepted: readonly PreparedLinks[]) => Promise<Caused & { readonly statuses: readonly Status[] }>,
  ): Promise<(Status | Error)[]> {
    const tasks = requests as readonly PreparedLinks[];
    const refused = await this.watch(tasks);
    const accepted = refused.size === 0 ? tasks : tasks.filter((_, index) => !refused.has(index));
    if (accepted.length === 0) return tasks.map((_, index) => refused.get(index)!);
    const reply = await send(accepted);
    this.relay.carry(reply);
    let next = 0;
    return tasks.map((_, index) => refused.get(index) ?? reply.statuses[next++]!);
  }

  /** Returns the errors, by the index of their task. */
  private async watch(tasks: readonly PreparedLinks[]): Promise<Map<number, PrerequisiteNotFoundError>> {
    const refused = new Map<number, PrerequisiteNotFoundError>();
    const calls: Promise<void>[] = [];
    for (const [queue, watches] of watchesOf(tasks)) {
      for (let first = 0; first < watches.length; first += MAX_WATCHES) {
        calls.push(this.watchSome(queue, watches.slice(first, first + MAX_WATCHES), tasks, refused));
      }
    }
    await Promise.all(calls);
    return refused;
  }

  private async watchSome(
    queue: string,
    watches: readonly Watch[],
    tasks: readonly PreparedLinks[],
    refused: Map<number, PrerequisiteNotFoundError>,
  ): Promise<void> {
    const reply = await this.links.watch(
      queue,
      watches.map(({ request }) => request),
    );
    this.relay.carry(reply);
    watches.forEach(({ owner, request }, index) => {
      if (reply.found[index] === 'watched' || request.missing !== undefined) return;
      refused.set(owner, new PrerequisiteNotFoundError(tasks[owner]!.message, { queue, id: request.id }));
    });
  }
}

/** By the queue of the prerequisite. */
function watchesOf(tasks: readonly PreparedLinks[]): Map<string, Watch[]> {
  const byQueue = new Map<string, Watch[]>();
  tasks.forEach((task, owner) => {
    const { missing, message, wait } = task;
    for (const { queue, id, n } of tasksBefore(task)) {
      const watch = {
        owner,
        request: {
          id,
          waiting: { queue: message.queue, id: message.id, n, until: wait!.deadline },
          ...(missing && { missing }),
        },
      };
      const known = byQueue.get(queue);
      if (known) known.push(watch);
      else byQueue.set(queue, [watch]);
    }
  });
  return byQueue;
}
