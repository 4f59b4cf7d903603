import { expect } from 'vitest';
import {
  BATCH_CALLBACKS,
  type BatchCallback,
  type BatchProgress,
  type Chunk,
  type NewBatch,
  taskIdOfMember,
} from '../../lib/broker/batches.js';
import type { EnqueueStatus } from '../../lib/broker/broker.js';
import type { LinkedRequest } from '../../lib/broker/links.js';
import type { TaskMessage } from '../../lib/wire/message.js';
import { request, uniqueId } from '../support/messages.js';
import { done } from './driver.js';
import { type Ending, LinkSession } from './link-session.js';

/** What the members of a call are, besides their ids. */
export interface MemberOptions extends Omit<LinkedRequest, 'message'> {
  readonly message?: Partial<TaskMessage>;
}

export const HOME = 'home';
/** Where the callbacks run. */
export const CALLS = 'calls';

/** Batches in a test. Their home is the queue `home`, their members are in `default` unless the test says otherwise. */
export class BatchSession extends LinkSession {
  /** The callbacks that have run, by batch. */
  readonly called = new Map<string, BatchCallback[]>();

  get batches() {
    return this.driver.broker.batches;
  }

  /** Opens a batch with all three callbacks; returns its id. */
  async open(options: Partial<NewBatch> = {}, home = HOME, callsIn = CALLS): Promise<string> {
    const id = options.id ?? `batch-${uniqueId('b')}`;
    const callback = (name: BatchCallback) => request({ id: `${id}~${name}`, type: `call:${name}`, queue: callsIn });
    const callbacks = Object.fromEntries(BATCH_CALLBACKS.map((name) => [name, callback(name)]));
    const batch = { id, name: 'test', callbacks, closeBy: this.driver.now + 3_600, retention: 3_600, ...options };
    this.took(await this.batches.open(home, batch));
    return id;
  }

  /** The requests for a chunk. */
  members(chunk: Chunk, options: MemberOptions = {}): LinkedRequest[] {
    const { message, ...rest } = options;
    return Array.from({ length: chunk.count }, (_, index) => {
      const id = taskIdOfMember(chunk.batch, chunk.base + index);
      return { ...request({ ...message, id, queue: chunk.queue }), ...rest };
    });
  }

  async reserve(batch: string, count: number, queue = 'default', byMember?: boolean): Promise<Chunk> {
    const { status, chunks } = await this.batches.reserve(HOME, batch, [{ queue, count }], byMember);
    expect(status).toBe('reserved');
    return chunks[0]!;
  }

  async create(chunk: Chunk, options?: MemberOptions): Promise<readonly EnqueueStatus[]> {
    const { status, statuses } = this.took(await this.batches.add(chunk, this.members(chunk, options)));
    expect(status).toBe('added');
    return statuses;
  }

  async confirm({ batch, base }: Chunk, created: number): Promise<void> {
    this.took(await this.batches.confirm(HOME, batch, [{ base, created }]));
  }

  /** Adds members as a client does; returns their statuses. */
  async add(
    batch: string,
    count: number,
    queue = 'default',
    options: MemberOptions = {},
    byMember?: boolean,
  ): Promise<readonly EnqueueStatus[]> {
    const chunk = await this.reserve(batch, count, queue, byMember);
    const statuses = await this.create(chunk, options);
    await this.confirm(chunk, statuses.filter((status) => status === 'enqueued').length);
    return statuses;
  }

  async close(batch: string): Promise<'closed' | 'missing'> {
    return this.took(await this.batches.close(HOME, batch)).status;
  }

  async progress(batch: string): Promise<BatchProgress | undefined> {
    return this.batches.progress(HOME, batch);
  }

  /** `state total pending succeeded failed` */
  async counts(batch: string): Promise<string> {
    const found = await this.progress(batch);
    return found
      ? `${found.state} ${found.total} ${found.pending} ${found.succeeded} ${found.failed}`
      : 'no such batch';
  }

  /** Ends the next tasks of a queue. */
  async run(count: number, ending: Ending = 'done', queue = 'default'): Promise<void> {
    for (let n = 0; n < count; n++) await this.runNext(ending, queue);
    await this.relay();
  }

  /** Runs the callbacks that are pending. Returns all that the batch has called so far. */
  async callbacks(batch: string, queue = CALLS): Promise<BatchCallback[]> {
    await this.relay();
    for (const task of await this.driver.take(100, queue)) {
      const [owner = '', name] = task.lease.id.split('~') as [string, BatchCallback];
      this.called.set(owner, [...(this.called.get(owner) ?? []), name]);
      this.took(await this.driver.exchange([done(task)], 0, queue));
    }
    return [...(this.called.get(batch) ?? [])].sort();
  }
}
