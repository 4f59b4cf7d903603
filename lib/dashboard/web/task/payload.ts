import type { Task, TaskInput } from '../api/task-types.js';
import { asText, fromBase64 } from '../text/bytes.js';

export interface PayloadText {
  /** How the text stands for bytes. */
  as: 'text' | 'base64';
  text: string;
}

export const NO_PAYLOAD: PayloadText = { as: 'text', text: '' };

/**
 * The payload to edit; undefined when it is not to be seen whole. Text fields make every line break a newline: what has others is edited
 * as base64, like what is no text.
 */
export function payloadOf(task: Pick<Task, 'payload_base64'>): PayloadText | undefined {
  if (task.payload_base64 === null) return undefined;
  const text = asText(fromBase64(task.payload_base64));
  const survives = text !== undefined && !text.includes('\r');
  return survives ? { as: 'text', text } : { as: 'base64', text: task.payload_base64 };
}

/** The payload, and what the server is told that it replaces; undefined when it was not loaded whole. */
export function editable(
  task: Pick<Task, 'payload_base64' | 'payload_sha256'>,
): { payload: PayloadText; replaces: string } | undefined {
  const payload = payloadOf(task);
  return payload && task.payload_sha256 !== null ? { payload, replaces: task.payload_sha256 } : undefined;
}

export const toPayload = ({ as, text }: PayloadText): Pick<TaskInput, 'payload_text' | 'payload_base64'> =>
  as === 'text' ? { payload_text: text } : { payload_base64: text.trim() };
