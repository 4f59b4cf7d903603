import { inspect } from 'node:util';
import type { AsynqEventMap, AsynqEventName, TaskRef } from '../events/events.js';
import type { AsynqLogger } from '../logger.js';
import { printableStack, shortened } from '../printable.js';
import { RedactedError } from '../redaction/redacted-error.js';

/** How events are logged: those without an entry are not. */
export type Wording = { readonly [E in AsynqEventName]?: (event: AsynqEventMap[E], logger: AsynqLogger) => void };

export const taskName = ({ type, id, queue }: TaskRef): string => `Task ${type} ${id} in queue "${queue}"`;

export const count = (amount: number, what: string): string => `${amount} ${what}${amount === 1 ? '' : 's'}`;

export const at = (time: Date | undefined): string => (time ? `at ${time.toISOString()}` : 'later');

export function errorText(error: unknown): string {
  try {
    if (error instanceof Error) return shortened(String(error.message) || error.name);
    return shortened(typeof error === 'string' ? error : inspect(error, { depth: 2, breakLength: Infinity }));
  } catch {
    return 'an error that cannot be shown';
  }
}

export function stackOf(error: unknown): string | undefined {
  try {
    return error instanceof Error && !(error instanceof RedactedError) ? printableStack(error) : undefined;
  } catch {
    return undefined; // the message says so
  }
}
