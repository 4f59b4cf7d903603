import { AsynqError } from '../../errors.js';
import { printable, printableStack } from '../../printable.js';

/** Errors in the command line or a setting: nothing was done. */
const USAGE_ERROR_CODES = ['ASYNQ_COMMAND_LINE', 'ASYNQ_INVALID_OPTION', 'ASYNQ_INVALID_TASK'];

export const isWrongUse = (error: unknown): boolean =>
  error instanceof AsynqError && USAGE_ERROR_CODES.includes(error.code);

export const isInterruption = (error: unknown): boolean => error instanceof Error && error.name === 'AbortError';

/** Whether the error concerns one queue or task only, so that the command can go on with the next. */
export const isAboutOne = (error: unknown): boolean =>
  error instanceof AsynqError && !isWrongUse(error) && error.code !== 'ASYNQ_BROKER_UNAVAILABLE';

/**
 * The message on one line; for a bug in this program, with the stack. Remedies that name methods of the library are
 * replaced by commands and flags.
 */
export function explain(error: unknown): string {
  if (!(error instanceof AsynqError)) {
    return `this should not have happened: ${error instanceof Error ? printableStack(error) : printable(String(error))}`;
  }
  return printable(error.message)
    .replace(/it has had no task yet, or its name is wrong: .*$/, 'see `nestjs-asynq queue list`')
    .replace('`force` deletes', '--force deletes');
}
