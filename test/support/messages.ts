import type { EnqueueRequest } from '../../lib/broker/broker.js';
import type { RepeatPolicy, RepeatRequest } from '../../lib/broker/uniqueness.js';
import { Keyspace } from '../../lib/wire/keys.js';
import type { TaskMessage } from '../../lib/wire/message.js';
import { FAIRNESS_HEADER, type FairShare, fairnessText } from '../../lib/wire/fairness.js';

let created = 0;

/** An id no other call of this process has given. */
export const uniqueId = (prefix = 'task'): string => `${prefix}-${++created}`;

/** A task message whose other fields are zero. */
export const zeroMessage = (fields: Partial<TaskMessage> = {}): TaskMessage => ({
  type: '',
  payload: Buffer.alloc(0),
  id: '',
  queue: '',
  maxRetry: 0,
  retried: 0,
  errorMsg: '',
  timeout: 0,
  deadline: 0,
  uniqueKey: '',
  lastFailedAt: 0,
  retention: 0,
  completedAt: 0,
  groupKey: '',
  headers: undefined,
  ...fields,
});

/** A task message with an id of its own; everything not given is as asynq's defaults make it. */
export const message = (partial: Partial<TaskMessage> = {}): TaskMessage =>
  zeroMessage({
    type: 'test:task',
    payload: Buffer.from('{"n":1}'),
    id: uniqueId(),
    queue: 'default',
    maxRetry: 25,
    timeout: 1800,
    ...partial,
  });

/** A request to enqueue `message(partial)`, at once unless `processAt` (Unix seconds) is given. */
export const request = (
  partial: Partial<TaskMessage> = {},
  options: Omit<EnqueueRequest, 'message'> = {},
): EnqueueRequest => ({ message: message(partial), ...options });

/** A request with a policy for repeats. Tasks of the same `lock` are the same; `once` takes the lock for the id. */
export function repeat(
  policy: RepeatPolicy,
  id = uniqueId(),
  {
    lock = 'one',
    ttl = 60,
    limit,
    processAt,
    payload = id,
    released = true,
    madeId = true,
    ...fields
  }: RepeatFields = {},
): RepeatRequest {
  const key = new Keyspace().queue('default').lock('test:task', 'key', [lock]);
  const isOnce = policy === 'once';
  const late = policy === 'latest' ? (limit ?? 2 ** 32) : limit;
  const body = {
    payload: Buffer.from(payload),
    id: isOnce ? `once-${lock}` : id,
    uniqueKey: !isOnce && released ? key : '',
  };
  return {
    message: message({ ...body, ...fields }),
    processAt,
    madeId: madeId && !isOnce,
    repeat: { policy, lock: isOnce ? '' : key, ttl: isOnce ? 0 : ttl, limit: late },
  };
}

interface RepeatFields extends Partial<Omit<TaskMessage, 'payload'>> {
  readonly lock?: string;
  readonly ttl?: number;
  readonly limit?: number | undefined;
  readonly processAt?: number | undefined;
  readonly payload?: string;
  /** Whether the success of the task frees the lock. */
  readonly released?: boolean;
  readonly madeId?: boolean;
}

/** The header of a task that has its turn among those of other keys. */
export const fairHeader = (key: string, share: Partial<FairShare> = {}): Record<string, string> => ({
  [FAIRNESS_HEADER]: fairnessText({ key, weight: 1, concurrency: 0, rate: 0, window: 1_000, ...share }),
});
