import type { Attributes, AttributeValue } from '@opentelemetry/api';
import type { TaskMessage } from '../../wire/message.js';

/** Names of OpenTelemetry's semantic conventions for messaging; they are not stable, hence not taken from its package. */
export const MESSAGING = {
  system: 'messaging.system',
  operationName: 'messaging.operation.name',
  operationType: 'messaging.operation.type',
  destination: 'messaging.destination.name',
  messageId: 'messaging.message.id',
  bodySize: 'messaging.message.body.size',
  batchCount: 'messaging.batch.message_count',
  errorType: 'error.type',
} as const;

/** What the conventions have no name for. */
export const ASYNQ = {
  type: 'asynq.task.type',
  group: 'asynq.task.group',
  retried: 'asynq.task.retried',
  maxRetry: 'asynq.task.max_retry',
  /** Milliseconds. */
  waited: 'asynq.task.waited',
  outcome: 'asynq.task.outcome',
  batchFailed: 'asynq.batch.failed_count',
} as const;

/** `send` and `process` are operation types of the conventions; waiting is none. */
export const operation = (name: 'send' | 'process', queue: string | undefined): Attributes => ({
  [MESSAGING.system]: 'asynq',
  [MESSAGING.operationName]: name,
  [MESSAGING.operationType]: name,
  ...(queue === undefined ? {} : { [MESSAGING.destination]: queue }),
});

/** What is known of a task from its message. */
export const taskAttributes = ({ id, type, payload }: Pick<TaskMessage, 'id' | 'type' | 'payload'>): Attributes => ({
  [MESSAGING.messageId]: id,
  [MESSAGING.bodySize]: payload.length,
  [ASYNQ.type]: type,
});

/** What an error is counted by: its stable code, else its name. */
export function errorType(error: unknown): AttributeValue {
  if (!(error instanceof Error)) return '_OTHER';
  const { code } = error as { code?: unknown };
  return typeof code === 'string' ? code : error.name;
}
