import { randomBytes } from 'node:crypto';
import type { BatchesRole, BatchProgress } from '../broker/batches.js';
import { ceilSeconds } from '../clock.js';
import { BatchNotFoundError, BatchTimeoutError, InvalidTaskError } from '../errors.js';
import { EndPoller, type Polled } from '../links/end-poller.js';
import type { EnqueueSpan } from '../tracing/tracing.js';
import { requireNonBlank, requireObject } from '../validation.js';
import { AsynqBatch } from './batch.js';
import { prepareCallbacks } from './callbacks.js';
import type { BatchParts } from './parts.js';
import { Sources } from './sources.js';
import { type BatchOptions, CALLBACKS, checkedQueue, readBatchOptions } from './options.js';

/** Where a batch is: `AsynqBatch` and `BatchInfo` are such references, and what they are as JSON. */
export interface BatchRef {
  readonly queue: string;
  readonly id: string;
}

/** Opens batches, and gives handles of those that exist. */
export class Batches {
  private readonly parts: BatchParts;

  constructor(parts: Omit<BatchParts, 'poller' | 'sources'>) {
    const poller = new EndPoller(awaitedBatches(parts.broker.batches), parts.broker);
    this.parts = { ...parts, poller, sources: new Sources() };
  }

  /** Ends every `done` under way, and lets `add` read nothing more of async sources. */
  close(): void {
    this.parts.sources.close();
    this.parts.poller.close();
  }

  /** @throws InvalidTaskError before anything is written */
  async open(options: BatchOptions): Promise<AsynqBatch> {
    const { parts } = this;
    parts.requireOpen();
    const read = readBatchOptions(options);
    const callbacks = callbacksOf(options);
    const span = callbacks > 0 ? parts.tracing?.startEnqueueMany(callbacks, undefined) : undefined;
    try {
      const batch = await this.store(options, read, span);
      span?.end();
      return batch;
    } catch (error) {
      span?.end(error, callbacks);
      throw error;
    }
  }

  private async store(
    options: BatchOptions,
    { name, queue, closeWithin, retention }: ReturnType<typeof readBatchOptions>,
    span: EnqueueSpan | undefined,
  ): Promise<AsynqBatch> {
    const { broker, preparer, relay } = this.parts;
    const now = broker.clock.now();
    const id = `batch-${randomBytes(16).toString('base64url')}`;
    const callbacks = prepareCallbacks(preparer, { queue, id }, options, now, span);
    const times = { closeBy: ceilSeconds(now + closeWithin), retention: ceilSeconds(retention) };
    const caused = await this.parts.track(broker.batches.open(queue, { id, name, callbacks, ...times }));
    relay.carry(caused);
    return new AsynqBatch(this.parts, queue, id);
  }

  /** A handle, without a look at the store. @throws InvalidTaskError */
  of(ref: BatchRef): AsynqBatch {
    requireObject(ref, 'a batch', InvalidTaskError);
    const queue = checkedQueue(ref.queue);
    return new AsynqBatch(this.parts, queue, requireNonBlank(ref.id, 'id of a batch', InvalidTaskError));
  }

  /** The batch of a task that runs. A member may add even after the batch has ended without it. */
  ofTask({ queue, id }: BatchRef, isMember: boolean): AsynqBatch {
    return new AsynqBatch(this.parts, queue, id, isMember);
  }
}

/** Batches, as `done` waits for them. */
const awaitedBatches = (batches: Pick<BatchesRole, 'progress'>): Polled<BatchProgress> => ({
  what: 'a batch',
  read: (queue, id) => batches.progress(queue, id),
  hasEnded: ({ state }) => state === 'succeeded' || state === 'completed',
  missing: (queue, id) => new BatchNotFoundError(queue, id),
  late: (queue, id, within, options) =>
    new BatchTimeoutError(
      `batch "${id}" of queue "${queue}" has not ended within ${within}; it goes on: wait again, or look at progress(). ` +
        'A batch that is open cannot end before close(), or its closeWithin',
      options,
    ),
});

const callbacksOf = (options: BatchOptions): number =>
  (Object.keys(CALLBACKS) as (keyof typeof CALLBACKS)[]).filter((name) => options[name] !== undefined).length;
