import type { TaskPlace } from '../broker/task-place.js';
import { InvalidTaskError } from '../errors.js';
import type { AwaitedTask } from '../results/results.js';
import { TaskInfo } from '../task/info.js';
import { describe } from '../validation.js';

/**
 * A TaskInfo, or the queue and the id of a task.
 *
 * @param what for messages, as in `task to signal`
 * @throws InvalidTaskError
 */
export function readTaskPlace(task: unknown, what: string): TaskPlace {
  if (typeof task !== 'object' || task === null) {
    throw new InvalidTaskError(
      `the ${what} must be a TaskInfo or { queue, id }, not ${describe(task)}; enqueue returns a TaskInfo`,
    );
  }
  const { queue, id } = task as { queue?: unknown; id?: unknown };
  return { queue: requireText(queue, `queue of the ${what}`), id: requireText(id, `id of the ${what}`) };
}

/** A TaskInfo says whether the task was there, and whether it is kept. @throws InvalidTaskError */
export function awaitedTask(task: unknown, what: string): AwaitedTask {
  const isInfo = task instanceof TaskInfo;
  return { ...readTaskPlace(task, what), known: isInfo, kept: isInfo && task.retention > 0 };
}

function requireText(value: unknown, what: string): string {
  if (typeof value === 'string' && value !== '') return value;
  throw new InvalidTaskError(`${what} must be a text, not ${describe(value)}; give its TaskInfo`);
}
