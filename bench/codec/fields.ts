import type { TaskMessage } from '../../lib/wire/message.js';

type Kind = 'string' | 'bytes' | 'int32' | 'int64';
/** The scalar fields of asynq.TaskMessage in ascending order, without the headers (15). */
export const SCALARS: readonly (readonly [no: number, protoName: string, name: keyof TaskMessage, kind: Kind])[] = [
  [1, 'type', 'type', 'string'],
  [2, 'payload', 'payload', 'bytes'],
  [3, 'id', 'id', 'string'],
  [4, 'queue', 'queue', 'string'],
  [5, 'retry', 'maxRetry', 'int32'],
  [6, 'retried', 'retried', 'int32'],
  [7, 'error_msg', 'errorMsg', 'string'],
  [8, 'timeout', 'timeout', 'int64'],
  [9, 'deadline', 'deadline', 'int64'],
  [10, 'unique_key', 'uniqueKey', 'string'],
  [11, 'last_failed_at', 'lastFailedAt', 'int64'],
  [12, 'retention', 'retention', 'int64'],
  [13, 'completed_at', 'completedAt', 'int64'],
  [14, 'group_key', 'groupKey', 'string'],
];
