import { inspect } from 'node:util';

/** asynq stores the whole text; a stack of megabytes in every retry would fill Redis. */
const LONGEST_ERROR_TEXT = 4_096;
const DEEPEST_CAUSE = 16;

/**
 * The text stored as `error_msg`: an error's message, a thrown string as it is, anything else as
 * Node shows it.
 */
export function errorText(error: unknown): string {
  const text = rawText(error);
  if (text.length <= LONGEST_ERROR_TEXT) return text;
  return `${text.slice(0, LONGEST_ERROR_TEXT)}… (${text.length} characters)`;
}

function rawText(error: unknown): string {
  try {
    if (error instanceof Error) return String(error.message) || error.name || 'Error';
    if (typeof error === 'string') return error || 'an empty string was thrown';
    return inspect(error, { depth: 2, maxStringLength: LONGEST_ERROR_TEXT, breakLength: Infinity });
  } catch {
    return 'an error that cannot be shown';
  }
}

/**
 * The error itself, or the first in its `cause` chain, that has this code: works across two copies
 * of this package.
 */
export function findCode(error: unknown, code: string): object | undefined {
  try {
    let current = error;
    for (let depth = 0; depth < DEEPEST_CAUSE && typeof current === 'object' && current !== null; depth++) {
      if ((current as { code?: unknown }).code === code) return current;
      current = (current as { cause?: unknown }).cause;
    }
  } catch {
    // a getter that throws: not one of ours
  }
  return undefined;
}

/** Whether the error, or one in its `cause` chain, has this code. */
export const hasCode = (error: unknown, code: string): boolean => findCode(error, code) !== undefined;
