import type { TaskMessage } from '../../lib/wire/message.js';

/** One way to turn a task message into bytes and back. All work on the same object, as the library needs it. */
export interface Candidate {
  readonly name: string;
  encode(message: TaskMessage): Uint8Array;
  decode(bytes: Buffer): TaskMessage;
}

export const NO_BYTES: Buffer = Buffer.alloc(0);

export const bufferOf = (bytes: Uint8Array): Buffer => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);

/** A draft of a message, to be filled field by field. */
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
