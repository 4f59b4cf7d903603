import type { EnqueueRequest } from '../../lib/broker/broker.js';
import type { TaskMessage } from '../../lib/wire/message.js';

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
