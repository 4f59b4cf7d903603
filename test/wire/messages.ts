import type { TaskMessage } from '../../lib/wire/message.js';

/** A task message whose other fields are zero. */
export const taskMessage = (fields: Partial<TaskMessage> = {}): TaskMessage => ({
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
