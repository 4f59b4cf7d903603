/** The header of a task that says by when its first attempt must begin. Without it a task does not expire. */
export const EXPIRY_HEADER = 'asynq-expires-at';

/** How the error of a task begins that is archived because it has expired: that of TaskExpiredError. */
export const TASK_EXPIRED = 'the task has expired (expiresIn)';

/** What becomes of a task that has expired. */
export type ExpiryPolicy = 'archive' | 'drop';

/** When a task expires. */
export interface Expiry {
  /** Milliseconds since the epoch. */
  readonly at: number;
  readonly policy: ExpiryPolicy;
}

const DROP = ' drop';

/** The value of the header. */
export const expiryText = ({ at, policy }: Expiry): string => `${at}${policy === 'drop' ? DROP : ''}`;

/** `undefined` without the header, and when it cannot be read: such a task does not expire. */
export function expiryOf(headers: Readonly<Record<string, string>> | undefined): Expiry | undefined {
  const text = headers?.[EXPIRY_HEADER];
  if (text === undefined) return undefined;
  const read = /^(\d{1,16})( drop)?$/.exec(text);
  return read ? { at: Number(read[1]), policy: read[2] === DROP ? 'drop' : 'archive' } : undefined;
}
