import { BatchNotFoundError, InvalidTaskError } from '../errors.js';
import { type DoneOptions, timeoutOfDone } from '../links/done-options.js';
import type { BatchInfo, MemberOptions, Payloads, TaskBatch } from '../task/batch.js';
import type { TaskDefinition } from '../task/definition.js';
import { describe } from '../validation.js';
import { Adder } from './adder.js';
import type { BatchParts } from './parts.js';
import { viewBatch } from './info.js';
import { kindOfMembers } from './kinds.js';

/** A batch that has ended. `succeeded`: all members have; `completed`: some have failed. */
export interface BatchOutcome extends BatchInfo {
  readonly state: 'succeeded' | 'completed';
  readonly endedAt: Date;
}

/**
 * Many tasks with one end. Any process may add members and close it: `asynq.batch({ queue, id })`.
 *
 * @example
 * const batch = await asynq.openBatch({ name: 'import 42', onSuccess: [ImportDone, { id: 42 }] });
 * await batch.add(ImportRow, rows);
 * await batch.close();
 */
export class AsynqBatch implements TaskBatch {
  // Not for console.log, which shows what the handle names.
  readonly #parts: BatchParts;
  readonly #byMember: boolean;

  /** Made by `AsynqClient.openBatch` and `AsynqClient.batch`. */
  constructor(
    parts: BatchParts,
    /** The queue where the batch lives; the tasks may be in others. */
    readonly queue: string,
    /** Made by `openBatch`: `batch-` and 22 characters. */
    readonly id: string,
    byMember = false,
  ) {
    this.#parts = parts;
    this.#byMember = byMember;
  }

  /**
   * Adds members, any number of times until the batch is closed. Payloads are read as they are
   * written, in chunks of up to 500 tasks or 1 MiB, so that a million rows of a stream need little
   * memory. Each chunk is created completely or not at all.
   *
   * @returns how many members were added: all of them
   * @throws InvalidTaskError when the task or its options are invalid; nothing is read or written
   * @throws BatchNotFoundError, BatchEndedError, ClosedError
   * @throws BatchAddError when some payloads were not added, or could not be read: it says which, and
   * why; the others are members. Nothing is read after a chunk that failed, or 1,000 invalid payloads
   */
  add(type: string, payloads: Payloads<unknown>, options?: MemberOptions): Promise<number>;
  add<P>(task: TaskDefinition<P>, payloads: Payloads<NoInfer<P>>, options?: MemberOptions): Promise<number>;
  async add(task: string | TaskDefinition, payloads: Payloads<unknown>, options?: MemberOptions): Promise<number> {
    const { id } = this;
    const parts = this.#parts;
    parts.requireOpen();
    const kind = kindOfMembers(parts.preparer, task, options);
    const count = lengthOf(payloads);
    const span = parts.tracing?.startEnqueueMany(count, kind.settings.queue);
    const adder = new Adder(parts, { home: this.queue, batch: id, byMember: this.#byMember }, kind, span);
    try {
      const added = await parts.track(adder.run(payloads));
      span?.end();
      return added;
    } catch (error) {
      span?.end(error, adder.failures);
      throw error;
    }
  }

  /**
   * Says that no more members will come, except from members. No callback comes before this; a batch
   * without members succeeds. Idempotent.
   *
   * @throws BatchNotFoundError, BrokerUnavailableError, ClosedError
   */
  async close(): Promise<void> {
    const { queue, id } = this;
    const parts = this.#parts;
    parts.requireOpen();
    const { status, ...caused } = await parts.track(parts.broker.batches.close(queue, id));
    if (status === 'missing') throw new BatchNotFoundError(queue, id);
    parts.relay.carry(caused);
  }

  /** How far it is, in one short call. @throws BatchNotFoundError, BrokerUnavailableError */
  async progress(): Promise<BatchInfo> {
    const { queue, id } = this;
    const parts = this.#parts;
    const progress = await parts.broker.batches.progress(queue, id);
    if (!progress) throw new BatchNotFoundError(queue, id);
    return viewBatch(progress);
  }

  /**
   * Resolves when the batch has ended, at once if it has: also when members have failed. It ends only
   * when it is closed, at `closeWithin` at the latest. A member must not wait for its own batch, which cannot end before it.
   *
   * @throws BatchTimeoutError when it has not ended in time; it goes on
   * @throws BatchNotFoundError when it does not exist, or is deleted meanwhile
   * @throws ClosedError when the client is closed meanwhile
   */
  async done(options: DoneOptions = {}): Promise<BatchOutcome> {
    const timeout = timeoutOfDone(options, 'progress()');
    return viewBatch(await this.#parts.poller.ended(this.queue, this.id, timeout)) as BatchOutcome;
  }

  /** The form for logs and JSON: what another process needs for `asynq.batch`. */
  toJSON(): { queue: string; id: string } {
    return { queue: this.queue, id: this.id };
  }
}

/** @throws InvalidTaskError unless the value can be iterated; a string is no list of payloads */
function lengthOf(payloads: unknown): number | undefined {
  if (Array.isArray(payloads)) return payloads.length;
  if (typeof payloads === 'object' && payloads !== null) {
    if (Symbol.iterator in payloads || Symbol.asyncIterator in payloads) return undefined;
  }
  throw new InvalidTaskError(
    `payloads of a batch must be an array, another iterable or an async iterable, not ${describe(payloads)}`,
  );
}
