import type { TaskMessage } from './message.js';

/** The header of a task that has failed for good while its steps are undone: its own `maxRetry` and `deadline`, which it gets back then. */
export const UNDOING_HEADER = 'asynq-undoing';

/** How often undoing is tried again. */
const RETRIES = 25;

export const isUndoing = ({ headers }: Pick<TaskMessage, 'headers'>): boolean =>
  headers?.[UNDOING_HEADER] !== undefined;

/** The message with which the handler is called to undo its steps: with retries, and without a deadline. */
export function beginUndoing(message: TaskMessage): TaskMessage {
  const { maxRetry, deadline, retried } = message;
  const headers = { ...message.headers, [UNDOING_HEADER]: `${maxRetry} ${deadline}` };
  return { ...message, headers, maxRetry: retried + RETRIES, deadline: 0 };
}

/** As it was before; one that is not being undone stays as it is. */
export function endUndoing(message: TaskMessage): TaskMessage {
  const { [UNDOING_HEADER]: own, ...headers } = message.headers ?? {};
  if (own === undefined) return message;
  return {
    ...message,
    ...beforeUndoing(message),
    headers: Object.keys(headers).length > 0 ? headers : undefined,
  };
}

/** What the task had before its steps were undone, the deadline in Unix seconds; `undefined`: they are not. */
export function beforeUndoing({
  headers,
  retried,
}: Pick<TaskMessage, 'headers' | 'retried'>): Pick<TaskMessage, 'maxRetry' | 'deadline'> | undefined {
  const own = headers?.[UNDOING_HEADER];
  if (own === undefined) return undefined;
  const [maxRetry = NaN, deadline = NaN] = own.split(' ').map(Number);
  return { maxRetry: wholeOr(maxRetry, retried), deadline: wholeOr(deadline, 0) };
}

const wholeOr = (value: number, otherwise: number): number =>
  Number.isSafeInteger(value) && value >= 0 ? value : otherwise;
