import { floorSeconds } from '../../clock.js';
import type { EnqueueRequest, EnqueueStatus, ProducerRole } from '../broker.js';
import { WAITING_GROUP } from '../links.js';
import type { WaitRecord } from './links/place.js';
import type { MemoryState } from './memory-state.js';
import { type QueueStore, type TaskRecord, storedMessage, wellFormed } from './queue-store.js';

export class MemoryProducer implements ProducerRole {
  constructor(private readonly state: MemoryState) {}

  async enqueue(queue: string, requests: readonly EnqueueRequest[]): Promise<EnqueueStatus[]> {
    return this.state.change(queue, (store, now) => enqueueAll(store, requests, now));
  }
}

/** Enqueues in order. Encodes, and so checks, everything before the first task is created. */
export function enqueueAll(store: QueueStore, requests: readonly EnqueueRequest[], now: number): EnqueueStatus[] {
  const messages = requests.map(({ message }) => storedMessage(message));
  if (requests.length > 0) store.listed = true;
  return requests.map((request, index) => createTask(store, request, messages[index] ?? Buffer.alloc(0), now));
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
  if (lock !== undefined && store.locks.isHeld(lock, now)) return 'duplicate';
  if (store.tasks.has(id)) return 'conflict';
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
