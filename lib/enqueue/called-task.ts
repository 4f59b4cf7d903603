import type { LinkedRequest } from '../broker/links.js';
import { InvalidTaskError } from '../errors.js';
import type { TaskDefinition } from '../task/definition.js';
import type { Tracing } from '../tracing/tracing.js';
import { describe, requireObject } from '../validation.js';
import { marksOf, refuseMarks } from './linked-task.js';
import type { Preparer } from './preparer.js';
import { refuseRepeat } from './repeats.js';
import type { CallOptions } from './task-kinds.js';

/** A task that a step of a handler calls. */
export interface CalledTask {
  /** Of the task of the handler. */
  readonly parentId: string;
  /** The step, and how often the steps were undone before. */
  readonly name: string;
  readonly task: unknown;
  readonly payload: unknown;
  readonly options: unknown;
}

const REFUSED: Readonly<Record<string, string>> = {
  taskId: 'its id is that of the task that calls it, ~ and the name of the step',
  group: 'the tasks of a group become another task, whose result is not that of this one',
  after: 'call it after the others have ended',
  onFailure: 'call it after the others have ended',
  waitAtMost: 'call it after the others have ended',
  onTimeout: 'call it after the others have ended',
  missing: 'call it after the others have ended',
};

/**
 * Checks and encodes a task that a step calls. Writes nothing.
 *
 * @param now milliseconds since the epoch
 * @throws InvalidTaskError
 */
export function calledTask(
  { parentId, name, task, payload, options }: CalledTask,
  now: number,
  preparer: Preparer,
  tracing: Tracing | undefined,
): LinkedRequest {
  const label = `the task of step "${name}"`;
  if (typeof task !== 'string' && (typeof task !== 'object' || task === null)) {
    throw new InvalidTaskError(`${label} must be a task definition or a type name, not ${describe(task)}`);
  }
  const kind = preparer.kindOf(task as string | TaskDefinition, readOptions(label, options));
  const { settings } = kind;
  const wrong = settings.group !== '' ? 'group' : settings.taskId !== undefined ? 'taskId' : undefined;
  if (wrong) throw refused(label, wrong);
  refuseMarks(settings.queue, `queue of ${label}`);
  const named = { ...kind, links: marksOf(kind.links), settings: { ...settings, taskId: `${parentId}~${name}` } };
  const prepared = preparer.prepare(named, payload, now);
  refuseRepeat(prepared, label);
  const request: LinkedRequest = prepared.request;
  const span = tracing?.startEnqueue(request.message);
  const message = span ? span.inject(request.message) : request.message;
  span?.end();
  return { ...request, message };
}

function readOptions(label: string, given: unknown): CallOptions | undefined {
  if (given === undefined) return undefined;
  const options = requireObject(given, `options of ${label}`, InvalidTaskError) as Record<string, unknown>;
  for (const name of Object.keys(REFUSED)) if (options[name] !== undefined) throw refused(label, name);
  return options;
}

const refused = (label: string, option: string): InvalidTaskError =>
  new InvalidTaskError(`${label} cannot have the option ${option}: ${REFUSED[option]}`);
