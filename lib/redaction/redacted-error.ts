import { REDACTED } from './rules.js';

/** Usual names and codes; one with spaces could contain any text. */
const PLAIN = /^[\w$.-]{1,80}$/;

/** The kind of an error, without its text: its stable code, else the name of its class. */
export function kindOfError(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown';
  const { code, name } = error as Error & { code?: unknown };
  return [code, name].find((kind): kind is string => typeof kind === 'string' && PLAIN.test(kind)) ?? 'Error';
}

/** Replaces an error whose text is hidden. */
export class RedactedError extends Error {
  constructor(error: unknown) {
    super(`${REDACTED} (${kindOfError(error)})`);
    this.name = new.target.name;
    // A stack would point here, not to the error.
    this.stack = undefined;
  }
}
