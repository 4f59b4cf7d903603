import type { BatchCallback, NewBatch } from '../broker/batches.js';
import type { EnqueueRequest } from '../broker/enqueue-request.js';
import { injected } from '../enqueue/prepared-task.js';
import { refuseRepeat } from '../enqueue/repeats.js';
import type { Preparer } from '../enqueue/preparer.js';
import { InvalidTaskError } from '../errors.js';
import type { TaskDefinition } from '../task/definition.js';
import type { TaskOptions } from '../task/options.js';
import type { EnqueueSpan } from '../tracing/tracing.js';
import { describe } from '../validation.js';
import { BATCH_HEADER, type BatchReference, batchText } from '../wire/batch-callback.js';
import { type BatchOptions, CALLBACKS } from './options.js';
import { kindOfCallback } from './kinds.js';

/**
 * The tasks that the options of a batch name, checked and encoded.
 *
 * @param batch also named in their headers, so that their handlers know it
 * @param now milliseconds since the epoch
 * @param span they belong to its trace
 * @throws InvalidTaskError
 */
export function prepareCallbacks(
  preparer: Preparer,
  batch: BatchReference,
  options: BatchOptions,
  now: number,
  span: EnqueueSpan | undefined,
): NewBatch['callbacks'] {
  const prepared: Partial<Record<BatchCallback, EnqueueRequest>> = {};
  for (const option of Object.keys(CALLBACKS) as (keyof typeof CALLBACKS)[]) {
    const given: unknown = options[option];
    if (given === undefined) continue;
    const [task, payload, taskOptions] = readTask(option, given);
    const kind = kindOfCallback(option, preparer, task, taskOptions);
    const made = preparer.prepare(kind, payload, now);
    refuseRepeat(made, `${option} of a batch`);
    const { request } = injected(made, span);
    const callback = CALLBACKS[option];
    const { message } = request;
    const headers = { ...message.headers, [BATCH_HEADER]: batchText(batch) };
    prepared[callback] = { ...request, message: { ...message, id: taskIdOfCallback(batch.id, callback), headers } };
  }
  return prepared;
}

const taskIdOfCallback = (batch: string, callback: BatchCallback): string => `${batch}~${callback}`;

function readTask(option: string, given: unknown): [string | TaskDefinition, unknown, TaskOptions | undefined] {
  if (!Array.isArray(given) || given.length === 0 || given.length > 3) {
    const found = Array.isArray(given) ? `an array of ${given.length}` : describe(given);
    throw new InvalidTaskError(
      `${option} of a batch must be an array of a task (a definition or a type), its payload and its options, not ${found}`,
    );
  }
  return given as [string | TaskDefinition, unknown, TaskOptions | undefined];
}
