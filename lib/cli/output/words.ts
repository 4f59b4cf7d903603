import { crashesOf, crashInWords } from '../../wire/crashes.js';

/** The name of the command. */
export const PROGRAM = 'nestjs-asynq';

/** `1 task`, `2 tasks` */
export const countTasks = (count: number): string => (count === 1 ? '1 task' : `${count} tasks`);

/** The share of failed attempts: `1.25%`. */
export const errorRate = (processed: number, failed: number): string =>
  processed === 0 ? 'N/A' : `${((failed / processed) * 100).toFixed(2)}%`;

/** How often the server of a task has died, and the last times. Empty when it has not. */
export function crashesInWords({ headers }: { readonly headers: Readonly<Record<string, string>> }): string {
  const crashes = crashesOf(headers);
  return crashes ? [crashes.count, ...crashes.last.map(crashInWords)].join('; ') : '';
}
