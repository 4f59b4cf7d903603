import { floorSeconds } from '../../clock.js';
import type { Acknowledge } from '../../task/acknowledge.js';
import type { AcknowledgedReply } from '../producer.js';
import type { EnqueueRequest, EnqueueStatus, ProducerRole } from '../broker.js';
import { type BoundedStatus, type Full, takesRoom } from '../enqueue-request.js';
import { WAITING_GROUP } from '../links.js';
import type { WaitRecord } from './links/place.js';
import type { MemoryState } from './memory-state.js';
import { type QueueStore, type TaskRecord, storedMessage, wellFormed } from './queue-store.js';

export class MemoryProducer implements ProducerRole {
  constructor(private readonly state: MemoryState) {}

  async enqueue(queue: string, requests: readonly EnqueueRequest[]): Promise<EnqueueStatus[]> {
    return this.state.change(queue, (store, now) => enqueueAll(store, requests, now));
  }

  /** There is nothing to lose but the process. */
  async enqueueAcknowledged(
    queue: string,
    requests: readonly EnqueueRequest[],
    { replicas, disk }: Acknowledge,
    maxPending = Infinity,
  ): Promise<AcknowledgedReply> {
    const statuses = await this.enqueueBounded(queue, requests, maxPending);
    return { statuses, replicas, disk, isEnough: true };
  }

  async enqueueBounded(
    queue: string,
    requests: readonly EnqueueRequest[],
    maxPending: number,
  ): Promise<BoundedStatus[]> {
    return this.state.change(queue, (store, now) => {
      const messages = requests.map(({ message }) => storedMessage(message));
      if (requests.length > 0) store.listed = true;
      return requests.map(
        (request, index) =>
          noRoom(store, request, maxPending, now) ??
          createTask(store, request, messages[index] ?? Buffer.alloc(0), now),
      );
    });
  }
}

/** Enqueues in order. Encodes, and so checks, everything before the first task is created. */
export function enqueueAll(store: QueueStore, requests: readonly EnqueueRequest[], now: number): EnqueueStatus[] {
  const messages = requests.map(({ message }) => storedMessage(message));
  if (requests.length > 0) store.listed = true;
  return requests.map((request, index) => createTask(store, request, messages[index] ?? Buffer.alloc(0), now));
}

/** Set when the queue has no room for a task that could be created otherwise. */
export function noRoom(store: QueueStore, request: EnqueueRequest, maxPending: number, now: number): Full | undefined {
  const pending = store.pending.size;
  if (pending < maxPending || !takesRoom(request) || refusal(store, request, now)) return undefined;
  return { pending };
}

function refusal(store: QueueStore, { message, uniqueTtl }: EnqueueRequest, now: number): EnqueueStatus | undefined {
  if (uniqueTtl !== undefined && store.locks.isHeld(wellFormed(message.uniqueKey), now)) return 'duplicate';
  return store.tasks.has(wellFormed(message.id)) ? 'conflict' : undefined;
}

/** Creates one task; it waits first when it is to come after others. */
export function createTask(
  store: QueueStore,
  request: EnqueueRequest,
  msg: Buffer,
  now: number,
  after?: WaitRecord,
): EnqueueStatus {
  const { message, uniqueTtl } = request;
  const id = wellFormed(message.id);
  const lock = uniqueTtl === undefined ? undefined : wellFormed(message.uniqueKey);
  const refused = refusal(store, request, now);
  if (refused) return refused;
  if (lock !== undefined) store.locks.take(lock, id, uniqueTtl ?? 1, now);
  const record: TaskRecord = {
    msg,
    state: 'pending',
    pendingSince: undefined,
    uniqueKey: lock,
    group: undefined,
    result: undefined,
    arrival: store.nextArrival(),
  };
  store.tasks.set(id, record);
  if (after) wait(store, id, record, after);
  else route(store, request, id, record, now);
  return 'enqueued';
}

function wait(store: QueueStore, id: string, record: TaskRecord, after: WaitRecord): void {
  record.after = after;
  record.state = 'aggregating';
  record.group = WAITING_GROUP;
  store.waiting.set(id, after.deadline);
}

/** With a time and a group, the task is scheduled and joins the group then. */
function route(store: QueueStore, request: EnqueueRequest, id: string, record: TaskRecord, now: number): void {
  const group = wellFormed(request.message.groupKey);
  if (group !== '') record.group = group;
  if (request.processAt !== undefined) {
    record.state = 'scheduled';
    store.scheduled.set(id, request.processAt);
  } else if (group !== '') {
    store.addToGroup(id, record, group, floorSeconds(now));
  } else {
    store.addPending(id, record, now);
  }
}
