import { CommandLineError, QueueNotFoundError } from '../../errors.js';
import type { AsynqInspector } from '../../inspector/inspector.js';
import { nearest } from '../../validation.js';
import type { TaskState } from '../../wire/states.js';
import { countTasks } from '../output/words.js';

/* Errors about names that Redis does not know, with the names it knows. */

/** The part of a CommandContext that reads from Redis. */
interface Reader {
  inspector(): Promise<AsynqInspector>;
}

/** How many groups one message names. */
const MAX_NAMED_GROUPS = 10;

/** A question with the nearest name of a queue; empty if no name is near or the queues cannot be read. */
export async function suggestQueue(context: Reader, queue: string): Promise<string> {
  const names = await context
    .inspector()
    .then((inspector) => inspector.queues())
    .catch(() => []);
  const near = nearest(queue, names);
  return near === undefined ? '' : `did you mean "${near}"?`;
}

/** The error; for an unknown queue, with the nearest name. */
export async function withSuggestion(context: Reader, error: unknown): Promise<unknown> {
  if (!(error instanceof QueueNotFoundError)) return error;
  const suggestion = await suggestQueue(context, error.queue);
  return suggestion ? new QueueNotFoundError(error.queue, suggestion) : error;
}

interface StateFlags {
  readonly queue: string;
  readonly state: TaskState;
  readonly group?: string | undefined;
}

/** Requires `--group` for aggregating tasks; the error names the groups. @throws CommandLineError, QueueNotFoundError */
export async function requireGroup(context: Reader & { readonly options: StateFlags }): Promise<void> {
  const { queue, state, group } = context.options;
  if (state !== 'aggregating') {
    if (group === undefined) return;
    throw new CommandLineError(`--group is for tasks that are aggregating, not for those that are ${state}`);
  }
  if (group !== undefined) return;
  const groups = await (await context.inspector()).groups(queue);
  const named = groups.slice(0, MAX_NAMED_GROUPS).map(({ group: name, size }) => `"${name}" (${countTasks(size)})`);
  const rest = groups.length - named.length;
  const more = rest > 0 ? ` and ${rest} more, see \`nestjs-asynq group list\`` : '';
  const there = groups.length === 0 ? 'has no groups with waiting tasks' : `has ${named.join(', ')}${more}`;
  throw new CommandLineError(`aggregating tasks are kept by group: give --group; queue "${queue}" ${there}`);
}
