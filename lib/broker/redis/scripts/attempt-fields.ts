import { MAX_ATTEMPTS } from '../../attempts.js';

/*
 * Fields of the hash of a task for the history of its attempts, as exchange.lua writes them:
 *   `attempt:kept`      "first next": the entries from `first` to before `next` are there
 *   `attempt:<n>`       an entry
 */
export const KEPT_FIELD = 'attempt:kept';

export const attemptField = (n: number): string => `attempt:${n}`;

/** The numbers of the entries that are there. @param kept what KEPT_FIELD holds */
export function readKept(kept: string | null): number[] {
  const [, first, next] = /^(\d{1,15}) (\d{1,15})$/.exec(kept ?? '') ?? [];
  if (first === undefined || next === undefined) return [];
  const from = Math.max(Number(first), Number(next) - MAX_ATTEMPTS);
  return Array.from({ length: Math.max(0, Number(next) - from) }, (_, index) => from + index);
}
