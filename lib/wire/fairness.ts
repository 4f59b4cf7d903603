/** The header of a task that has its turn among others by a key: its share, and the key. */
export const FAIRNESS_HEADER = 'asynq-fairness';

/** What the tasks of one key of a fair queue get. */
export interface FairShare {
  /** Whose tasks take turns with those of other keys. */
  readonly key: string;
  /** Turns for each of a key of weight 1; more than 0. */
  readonly weight: number;
  /** Tasks of the key that may run at a time in the fleet; 0 is no limit. */
  readonly concurrency: number;
  /** Tasks of the key that may start per `window`; 0 is no limit. */
  readonly rate: number;
  /** Milliseconds, at least 1. */
  readonly window: number;
}

/** The value of the header: weight, concurrency, rate and window, then the key, which may have blanks. */
export const fairnessText = ({ key, weight, concurrency, rate, window }: FairShare): string =>
  `${weight} ${concurrency} ${rate} ${window} ${key}`;

const NUMBER = /^(?:\d+\.?\d*|\d*\.\d+)(?:e[+-]\d+)?$/i;

/** `undefined` without the header, and when it cannot be read: then the task is one of those without a key. */
export function fairnessOf(headers: Readonly<Record<string, string>> | undefined): FairShare | undefined {
  const text = headers?.[FAIRNESS_HEADER];
  if (text === undefined) return undefined;
  const [, weight, concurrency, rate, window, key] = /^(\S+) (\d{1,10}) (\d{1,10}) (\d{1,10}) (.+)$/s.exec(text) ?? [];
  if (key === undefined || !NUMBER.test(weight!) || !(Number(weight) > 0)) return undefined;
  const limits = { concurrency: Number(concurrency), rate: Number(rate), window: Math.max(1, Number(window)) };
  return { key, weight: Number(weight), ...limits };
}
