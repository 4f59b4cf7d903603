/** The header of a callback of a batch: the batch, as JSON `{ queue, id }`. */
export const BATCH_HEADER = 'asynq-batch';

/** Where a batch lives, and its id. */
export interface BatchReference {
  readonly queue: string;
  readonly id: string;
}

/** The value of the header. */
export const batchText = ({ queue, id }: BatchReference): string => JSON.stringify({ queue, id });

/** `undefined` without the header, and when it cannot be read. */
export function batchOfCallback(headers: Readonly<Record<string, string>> | undefined): BatchReference | undefined {
  const text = headers?.[BATCH_HEADER];
  if (text === undefined) return undefined;
  try {
    const { queue, id } = JSON.parse(text) as Partial<BatchReference>;
    return typeof queue === 'string' && typeof id === 'string' ? { queue, id } : undefined;
  } catch {
    return undefined;
  }
}
