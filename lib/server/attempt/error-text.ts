import { inspect } from 'node:util';

/** asynq stores the whole text, but megabytes in every retry would fill Redis. */
const MAX_ERROR_LENGTH = 4_096;

/** The text stored as `error_msg`: an error's message, or the thrown value as Node shows it. */
export function errorText(error: unknown): string {
  const text = rawText(error);
  if (text.length <= MAX_ERROR_LENGTH) return text;
  return `${text.slice(0, MAX_ERROR_LENGTH)}… (${text.length} characters)`;
}

function rawText(error: unknown): string {
  try {
    if (error instanceof Error) return String(error.message) || error.name || 'Error';
    if (typeof error === 'string') return error || 'an empty string was thrown';
    if (typeof error === 'function') return `the class ${error.name} was thrown; throw new ${error.name}(…)`;
    if (error === undefined) return 'undefined was thrown';
    return inspect(error, { depth: 2, maxStringLength: MAX_ERROR_LENGTH, breakLength: Infinity });
  } catch {
    return 'an error that cannot be shown';
  }
}
