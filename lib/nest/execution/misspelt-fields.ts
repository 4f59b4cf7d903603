import type { AsynqEvents } from '../../events/events.js';
import type { TaskContext } from '../../task/context.js';
import { nearest } from '../../validation.js';

type Read = (task: TaskContext) => unknown;

/** The names of a payload that are compared: more are data, and no fields. */
const MOST_NAMES = 200;

/**
 * Reads payloads, and looks at the first one for fields that parameters take and that it has under a similar name: where `@Payload` has a
 * text alone, the compiler knows nothing of it, and a misspelt field is `undefined` for ever.
 */
export function watched(read: Read, fields: readonly string[], handler: string, events: AsynqEvents): Read {
  let looked = false;
  return (task) => {
    const payload = read(task);
    if (looked || typeof payload !== 'object' || payload === null) return payload;
    looked = true;
    const others = Object.keys(payload)
      .filter((name) => !fields.includes(name))
      .slice(0, MOST_NAMES);
    for (const field of new Set(fields)) {
      if (field in payload) continue;
      const near = nearest(field, others);
      if (near !== undefined) events.emit('payloadFieldMissing', { type: task.type, handler, field, near });
    }
    return payload;
  };
}
