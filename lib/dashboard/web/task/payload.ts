import type { Task, TaskInput } from '../api/task-types.js';
import { asText, fromBase64 } from '../text/bytes.js';

export interface PayloadText {
  /** How the text encodes the bytes. */
  as: 'text' | 'base64';
  text: string;
}

export const NO_PAYLOAD: PayloadText = { as: 'text', text: '' };

/**
 * The payload to edit; undefined if it is not shown whole. A text field turns every line break into
 * a newline, so a text with other line breaks is edited as base64, like binary data.
 */
export function payloadOf(task: Pick<Task, 'payload_base64'>): PayloadText | undefined {
  if (task.payload_base64 === null) return undefined;
  const text = asText(fromBase64(task.payload_base64));
  const survives = text !== undefined && !text.includes('\r');
  return survives ? { as: 'text', text } : { as: 'base64', text: task.payload_base64 };
}

/** The payload and the hash of what it replaces; undefined if it was not loaded whole. */
export function editable(
  task: Pick<Task, 'payload_base64' | 'payload_sha256'>,
): { payload: PayloadText; replaces: string } | undefined {
  const payload = payloadOf(task);
  return payload && task.payload_sha256 !== null ? { payload, replaces: task.payload_sha256 } : undefined;
}

export const toPayload = ({ as, text }: PayloadText): Pick<TaskInput, 'payload_text' | 'payload_base64'> =>
  as === 'text' ? { payload_text: text } : { payload_base64: text.trim() };
