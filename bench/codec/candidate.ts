import type { TaskMessage } from '../../lib/wire/message.js';

/** One way to encode and decode a task message. All candidates use the same object, the one that the package needs. */
export interface Candidate {
  readonly name: string;
  encode(message: TaskMessage): Uint8Array;
  decode(bytes: Buffer): TaskMessage;
}

export const NO_BYTES: Buffer = Buffer.alloc(0);

export const bufferOf = (bytes: Uint8Array): Buffer => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);

/** A message that is filled field by field. */
export const emptyMessage = (): { -readonly [K in keyof TaskMessage]: TaskMessage[K] } => ({
  type: '',
  payload: NO_BYTES,
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
  unknownFields: undefined,
});
