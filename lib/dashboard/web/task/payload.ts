import type { Task, TaskInput } from '../api/types.js';
import { asText, fromBase64 } from '../text/bytes.js';

export interface PayloadText {
  /** How the text stands for bytes. */
  as: 'text' | 'base64';
  text: string;
}

export const NO_PAYLOAD: PayloadText = { as: 'text', text: '' };

/** The payload to edit; undefined when it is not to be seen. */
export function payloadOf(task: Pick<Task, 'payload_base64'>): PayloadText | undefined {
  if (task.payload_base64 === null) return undefined;
  const text = asText(fromBase64(task.payload_base64));
  return text === undefined ? { as: 'base64', text: task.payload_base64 } : { as: 'text', text };
}

export const toPayload = ({ as, text }: PayloadText): Pick<TaskInput, 'payload_text' | 'payload_base64'> =>
  as === 'text' ? { payload_text: text } : { payload_base64: text.trim() };
