import { REDACTED } from './rules.js';

/** Names and codes as programs have them; one with spaces in it could say anything. */
const PLAIN = /^[\w$.-]{1,80}$/;

/** What an error is, and nothing of what it says: its stable code, else the name of its class. */
export function kindOfError(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown';
  const { code, name } = error as Error & { code?: unknown };
  return [code, name].find((kind): kind is string => typeof kind === 'string' && PLAIN.test(kind)) ?? 'Error';
}

/** Stands for an error whose text is hidden. */
export class RedactedError extends Error {
  constructor(error: unknown) {
    super(`${REDACTED} (${kindOfError(error)})`);
    this.name = new.target.name;
    // It would lead to where it was hidden.
    this.stack = undefined;
  }
}
