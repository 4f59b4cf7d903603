import { InvalidTaskError } from '../errors.js';
import { FOREIGN } from '../foreign-names.js';
import type { AnyTask } from '../task/task-types.js';
import type { TaskOptions } from '../task/options.js';
import { rejectUnknownKeys, requireObject } from '../validation.js';
import type { DefinedItem, NamedItem } from './types.js';

export type { AnyTask };

const ITEM_NAMES = ['task', 'type', 'payload', 'options'];

/**
 * Reads a task, its payload and its options from one object.
 *
 * @param what for messages, as in `a task of enqueueMany`
 * @throws InvalidTaskError
 */
export function readItem(
  given: unknown,
  what: string,
): { task: AnyTask; payload: unknown; options: TaskOptions | undefined } {
  const item = requireObject(given, what, InvalidTaskError) as Partial<DefinedItem & NamedItem>;
  rejectUnknownKeys(item, ITEM_NAMES, `key of ${what}:`, InvalidTaskError, FOREIGN.item);
  if ((item.task === undefined) === (item.type === undefined)) {
    throw new InvalidTaskError(`${what} takes either "task" (a definition) or "type" (a name)`);
  }
  return { task: (item.task ?? item.type)!, payload: item.payload, options: item.options };
}
