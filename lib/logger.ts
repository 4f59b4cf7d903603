/** What the core needs of a logger. Nest's `Logger` fits; the core never writes to the console itself. */
export interface AsynqLogger {
  debug(message: string): void;
  log(message: string): void;
  warn(message: string): void;
  error(message: string, stack?: string): void;
}

/** Says nothing: the default outside Nest. */
export const silentLogger: AsynqLogger = { debug() {}, log() {}, warn() {}, error() {} };
