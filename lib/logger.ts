import { printable } from './printable.js';

/** The logger of the core. Nest's `Logger` fits; the core never writes to the console itself. */
export interface AsynqLogger {
  debug(message: string): void;
  log(message: string): void;
  warn(message: string): void;
  error(message: string, stack?: string): void;
}

/**
 * The logger, with each message on one line and without escape sequences. Stacks stay as they are.
 */
export const printableLogger = (logger: AsynqLogger): AsynqLogger => ({
  debug: (message) => logger.debug(printable(message)),
  log: (message) => logger.log(printable(message)),
  warn: (message) => logger.warn(printable(message)),
  error: (message, ...stack) => logger.error(printable(message), ...stack),
});
