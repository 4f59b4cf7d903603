import { printable } from './printable.js';

/**
 * What the core needs of a logger. Nest's `Logger` fits; the core never writes to the console
 * itself.
 */
export interface AsynqLogger {
  debug(message: string): void;
  log(message: string): void;
  warn(message: string): void;
  error(message: string, stack?: string): void;
}

/** Says nothing: the default outside Nest. */
export const silentLogger: AsynqLogger = { debug() {}, log() {}, warn() {}, error() {} };

/**
 * The same logger, for messages that quote names and errors: each is one line, without escape
 * sequences. Stacks pass as they are.
 */
export const printableLogger = (logger: AsynqLogger): AsynqLogger => ({
  debug: (message) => logger.debug(printable(message)),
  log: (message) => logger.log(printable(message)),
  warn: (message) => logger.warn(printable(message)),
  error: (message, ...stack) => logger.error(printable(message), ...stack),
});
