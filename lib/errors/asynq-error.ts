/**
 * The base of every error that this library throws. Each class has a stable `code`; a message names
 * the thing, the value and the remedy. Texts that asynq stores or shows are asynq's, word for word (wire-protocol
 * appendix B, section 5.6).
 */
export abstract class AsynqError extends Error {
  /** Stable, machine-readable: compare this, not the message. */
  abstract readonly code: string;

  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = new.target.name;
  }
}

/** The error class that a check throws. */
export type ErrorClass = new (message: string) => Error;
