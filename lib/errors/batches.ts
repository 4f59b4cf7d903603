import { AsynqError } from './asynq-error.js';

/** The queue has no such batch: it was deleted, its retention is over, or it never existed. */
export class BatchNotFoundError extends AsynqError {
  readonly code = 'ASYNQ_BATCH_NOT_FOUND';
  constructor(queue: string, id: string) {
    super(
      `batch not found: id=${JSON.stringify(id)}, queue=${JSON.stringify(queue)}; a batch is found in the queue it was opened in, ` +
        'until the retention after its end',
    );
  }
}

/** The batch did not end in the time that the caller would wait. The batch goes on. */
export class BatchTimeoutError extends AsynqError {
  readonly code = 'ASYNQ_BATCH_TIMEOUT';
}

/** The batch has ended, or is closed and has no member left: it takes no more members. */
export class BatchEndedError extends AsynqError {
  readonly code = 'ASYNQ_BATCH_ENDED';
  constructor(queue: string, id: string) {
    super(
      `batch ${JSON.stringify(id)} of queue ${JSON.stringify(queue)} has ended and takes no more members; close it after the last ` +
        'add, give it a longer closeWithin, or open another',
    );
  }
}

/** A handler has read `batch` of a task that is neither a member nor a callback of a batch. */
export class NotAMemberError extends AsynqError {
  readonly code = 'ASYNQ_NOT_A_MEMBER';
  constructor(task: { readonly id: string; readonly type: string }) {
    super(
      `task "${task.type}" (id ${task.id}) is no member and no callback of a batch, so it has none; add it by the batch: ` +
        'batch.add(definition, payloads)',
    );
  }
}

/** The batch has not ended: its callbacks are still to come. Nothing was deleted. */
export class BatchRunningError extends AsynqError {
  readonly code = 'ASYNQ_BATCH_RUNNING';
  constructor(queue: string, id: string) {
    super(
      `batch ${JSON.stringify(id)} of queue ${JSON.stringify(queue)} has not ended and was not deleted; close it, and let its ` +
        'members end (delete those that are not wanted)',
    );
  }
}

/** Payloads of one call that were not added, and why. */
export interface NotAdded {
  /** The index of the first. */
  readonly from: number;
  /** The index behind the last. */
  readonly to: number;
  /**
   * InvalidTaskError, DuplicateTaskError, BatchEndedError or BrokerUnavailableError. After the last
   * one they may have been added all the same; the batch finds out within a minute and counts them.
   */
  readonly error: Error;
}

/** Some payloads of a call were not added to the batch; the others are members. */
export class BatchAddError extends AsynqError {
  readonly code = 'ASYNQ_BATCH_ADD';
  /** How many payloads of the call are members. */
  readonly added: number;
  /** In order. */
  readonly notAdded: readonly NotAdded[];
  /** How many payloads were read; those behind are not added, too. */
  readonly read: number;

  constructor(
    message: string,
    { added, notAdded, read }: Pick<BatchAddError, 'added' | 'notAdded' | 'read'>,
    options?: ErrorOptions,
  ) {
    super(message, options);
    this.added = added;
    this.notAdded = notAdded;
    this.read = read;
  }
}
