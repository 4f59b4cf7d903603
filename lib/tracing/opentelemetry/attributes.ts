import type { Attributes, AttributeValue } from '@opentelemetry/api';
import type { TaskMessage } from '../../wire/message.js';

/**
 * Names of OpenTelemetry's semantic conventions for messaging; they are not stable, so its package
 * is not used.
 */
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

/** The name of the instrumentation scope. */
export const SCOPE = 'nestjs-asynq';

/** Our names, where the conventions have none. */
export const ASYNQ = {
  type: 'asynq.task.type',
  group: 'asynq.task.group',
  retried: 'asynq.task.retried',
  maxRetry: 'asynq.task.max_retry',
  /** Milliseconds. */
  waited: 'asynq.task.waited',
  outcome: 'asynq.task.outcome',
  batchFailed: 'asynq.batch.failed_count',
  step: 'asynq.step.name',
  stepKind: 'asynq.step.kind',
  stepOutcome: 'asynq.step.outcome',
} as const;

/** The conventions have the operation types `send` and `process`, and none for waiting. */
export const operation = (name: 'send' | 'process', queue: string | undefined): Attributes => ({
  [MESSAGING.system]: 'asynq',
  [MESSAGING.operationName]: name,
  [MESSAGING.operationType]: name,
  ...(queue === undefined ? {} : { [MESSAGING.destination]: queue }),
});

/** The attributes of a task from its message. */
export const taskAttributes = ({ id, type, payload }: Pick<TaskMessage, 'id' | 'type' | 'payload'>): Attributes => ({
  [MESSAGING.messageId]: id,
  [MESSAGING.bodySize]: payload.length,
  [ASYNQ.type]: type,
});

/** The type of an error: its stable code, else its name. */
export function errorType(error: unknown): AttributeValue {
  if (!(error instanceof Error)) return '_OTHER';
  const { code } = error as { code?: unknown };
  return typeof code === 'string' ? code : error.name;
}
