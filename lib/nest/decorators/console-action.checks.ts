import { InvalidHandlerError } from '../../errors.js';
import { CONSOLE_ACTIONS, CONSOLE_OUTCOMES, type ConsoleActionFilter } from '../../events/console-action.js';
import { describe, nearest, rejectUnknownKeys, requireNonBlank, requireObject } from '../../validation.js';

/** @param what names the caller in the message @throws InvalidHandlerError */
export function checkConsoleActionFilter(filter: ConsoleActionFilter, what: string): void {
  requireObject(filter, `${what}: the filter`, InvalidHandlerError);
  rejectUnknownKeys(filter, ['action', 'outcome', 'queue'], `key of the filter of ${what}:`, InvalidHandlerError);
  for (const name of listed(filter.action)) requireOneOf(name, CONSOLE_ACTIONS, `${what}: action`);
  for (const name of listed(filter.outcome)) requireOneOf(name, CONSOLE_OUTCOMES, `${what}: outcome`);
  for (const queue of listed(filter.queue)) requireNonBlank(queue, `${what}: queue`, InvalidHandlerError);
}

function requireOneOf(name: unknown, known: readonly string[], what: string): void {
  if (known.includes(name as string)) return;
  const near = typeof name === 'string' ? nearest(name, known) : undefined;
  const remedy = near ? `did you mean "${near}"?` : `known are ${known.join(', ')}`;
  throw new InvalidHandlerError(`${what} is ${describe(name)}; ${remedy}`);
}

const listed = (value: unknown): readonly unknown[] =>
  value === undefined ? [] : Array.isArray(value) ? (value as unknown[]) : [value];
