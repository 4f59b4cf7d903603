import { inspect } from 'node:util';

/** asynq stores the whole text; a stack of megabytes in every retry would fill Redis. */
const LONGEST_ERROR_TEXT = 4_096;

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
