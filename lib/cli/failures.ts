import { AsynqError } from '../errors.js';
import { printable, printableStack } from '../printable.js';

/** What is wrong with the line or a setting, before anything was done. */
const USAGE_ERROR_CODES = ['ASYNQ_COMMAND_LINE', 'ASYNQ_INVALID_OPTION', 'ASYNQ_INVALID_TASK'];

export const isWrongUse = (error: unknown): boolean =>
  error instanceof AsynqError && USAGE_ERROR_CODES.includes(error.code);

export const isInterruption = (error: unknown): boolean => error instanceof Error && error.name === 'AbortError';

/** Whether it concerns one queue or task only, and the command may go on with the next. */
export const isAboutOne = (error: unknown): boolean =>
  error instanceof AsynqError && !isWrongUse(error) && error.code !== 'ASYNQ_BROKER_UNAVAILABLE';

/** The message, on one line; a fault in this program with the place. What speaks of the library is put in the words of the command line. */
export function explain(error: unknown): string {
  if (!(error instanceof AsynqError)) {
    return `this should not have happened: ${error instanceof Error ? printableStack(error) : printable(String(error))}`;
  }
  return printable(error.message)
    .replace('check its name against AsynqInspector.queues()', 'see `nestjs-asynq queue list`')
    .replace('`force` deletes', '--force deletes');
}
