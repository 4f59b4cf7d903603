import { isUtf8 } from 'node:buffer';
import type { TaskInfo } from '../../task/info.js';

/** Characters that JSON does not escape but a terminal may obey: DEL, C1 controls, bidirectional and invisible ones. */
const UNSAFE_CHARACTERS = /[\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/g;

/** JSON for programs, also safe to show on a terminal. */
export const toJson = (value: unknown): string =>
  JSON.stringify(value, null, 2).replace(
    UNSAFE_CHARACTERS,
    (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );

/** Text as it is, other bytes in base64, `null` for no bytes. */
export function bytesAsJson(bytes: Buffer | undefined): { text: string | null; encoding: 'utf8' | 'base64' } {
  if (bytes === undefined) return { text: null, encoding: 'utf8' };
  return isUtf8(bytes)
    ? { text: bytes.toString(), encoding: 'utf8' }
    : { text: bytes.toString('base64'), encoding: 'base64' };
}

/** A task in the `--json` of every command: the names of TaskInfo, times in RFC 3339, durations in milliseconds. */
export function taskAsJson(task: TaskInfo): object {
  const payload = bytesAsJson(task.payload);
  const result = bytesAsJson(task.result);
  return {
    id: task.id,
    queue: task.queue,
    type: task.type,
    state: task.state,
    enqueuedAt: task.enqueuedAt ?? null,
    payload: payload.text,
    payloadEncoding: payload.encoding,
    headers: task.headers,
    maxRetry: task.maxRetry,
    retried: task.retried,
    crashes: task.crashes,
    lastCrashes: task.lastCrashes,
    lastErr: task.lastErr,
    lastFailedAt: task.lastFailedAt ?? null,
    timeout: task.timeout,
    deadline: task.deadline ?? null,
    expiresAt: task.expiresAt ?? null,
    group: task.group,
    nextProcessAt: task.nextProcessAt ?? null,
    pendingSince: task.pendingSince ?? null,
    heldBy: task.heldBy ?? null,
    heldSince: task.heldSince ?? null,
    isOrphaned: task.isOrphaned,
    retention: task.retention,
    completedAt: task.completedAt ?? null,
    result: result.text,
    resultEncoding: result.encoding,
    ...(task.progress && { progress: task.progress }),
    ...(task.log && { log: task.log }),
    ...(task.chunks && { chunks: task.chunks }),
  };
}
