import { types } from 'node:util';
import { ceilSeconds } from '../clock.js';
import { parseDuration } from '../duration.js';
import { InvalidTaskError } from '../errors.js';
import { circleHint, describe, refuseBraces, rejectUnknownKeys, requireFunction } from '../validation.js';
import {
  CALL_LINK_NAMES,
  type CallLinks,
  type DefinedTask,
  type DefinitionLinks,
  FAILURE_POLICIES,
  type KeyFunction,
  type LinkSettings,
  MAX_PREREQUISITES,
  MISSING_POLICIES,
  type TaskPrerequisite,
  TIMEOUT_POLICIES,
  type TypePrerequisite,
} from './links.js';
import { oneOf } from './one-of.js';
import { name } from './settings.js';

const DEFAULT_LINKS: LinkSettings = {
  key: undefined,
  rememberFor: 0,
  after: [],
  onFailure: 'cancel',
  waitAtMost: 7 * 86_400_000,
  onTimeout: 'archive',
  missing: undefined,
};

const MAX_KEY_LENGTH = 1_000;

export const isTypePrerequisite = (one: TypePrerequisite | TaskPrerequisite): one is TypePrerequisite => 'task' in one;

/** @throws InvalidTaskError @returns `undefined` for a definition without links */
export function readDefinitionLinks(
  type: string,
  options: DefinitionLinks<never>,
  group: unknown,
): LinkSettings | undefined {
  const { key, rememberFor, after, onFailure, waitAtMost, onTimeout, missing } = options;
  const given = { after, onFailure, waitAtMost, onTimeout, missing };
  if (key === undefined && rememberFor === undefined && !isGiven(given)) return undefined;
  const what = `task "${type}"`;
  if (key !== undefined) requireFunction(key, `key of ${what}`, InvalidTaskError);
  const remembered = rememberFor === undefined ? 0 : readRememberFor(rememberFor, what);
  if (remembered > 0 && key === undefined) {
    throw new InvalidTaskError(`rememberFor of ${what} needs key, such as (payload) => payload.orderId`);
  }
  if (remembered > 0) refuseBraces(type, 'the type of a task with rememberFor', InvalidTaskError);
  const links = readWait(type, { ...DEFAULT_LINKS, key, rememberFor: remembered }, given);
  return Object.freeze(checkGroup(what, links, group));
}

/** The links of a call: its options replace those of the definition. @throws InvalidTaskError */
export function readCallLinks(
  type: string,
  base: LinkSettings | undefined,
  options: CallLinks<never>,
  group: string,
): LinkSettings | undefined {
  if (!isGiven(options)) return base && checkGroup(`task "${type}"`, base, group);
  const links = readWait(type, base ?? DEFAULT_LINKS, options);
  if (options.after === undefined && links.after.length === 0) {
    const idle = (['onFailure', 'waitAtMost', 'onTimeout', 'missing'] as const).find(
      (one) => options[one] !== undefined,
    );
    throw new InvalidTaskError(`${idle} of task "${type}" needs after: without it the task waits for nothing`);
  }
  return checkGroup(`task "${type}"`, links, group);
}

/** For tasks that wait as their definition says. @throws InvalidTaskError */
export function refuseCallLinks(options: object, what: string): void {
  if ('acknowledge' in options) {
    throw new InvalidTaskError(`${what} cannot have "acknowledge", as nobody waits for its enqueue; leave it out`);
  }
  const wait = CALL_LINK_NAMES.find((one) => one in options);
  if (wait === undefined) return;
  throw new InvalidTaskError(
    `${what} cannot have "${wait}"; leave it out, or define the task with it: here a task waits as its definition says`,
  );
}

/**
 * Calls a key function.
 *
 * @param what for messages
 * @throws InvalidTaskError unless it returns the text of a key
 */
export function readKey(key: KeyFunction<never>, payload: unknown, what: string): string {
  let value: unknown;
  try {
    value = (key as KeyFunction<unknown>)(payload);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new InvalidTaskError(`${what} threw: ${reason}`, { cause: error });
  }
  if (types.isPromise(value)) {
    value.catch(() => undefined);
    throw new InvalidTaskError(`${what} returned a promise; it must return the text at once`);
  }
  if (typeof value !== 'string') {
    throw new InvalidTaskError(
      `${what} must return a string, not ${describe(value)}; use an id that every payload has`,
    );
  }
  name(value, what, `${what} returned blank text; use an id that every payload has`);
  if (value.length <= MAX_KEY_LENGTH) return value;
  throw new InvalidTaskError(`${what} returned ${value.length} characters; a key has at most ${MAX_KEY_LENGTH}`);
}

/** A key that a call gives. @throws InvalidTaskError */
export function readKeyText(value: unknown, what: string): string {
  const key = name(value, what, `${what} is blank; give the business id of the task`);
  if (key.length <= MAX_KEY_LENGTH) return key;
  throw new InvalidTaskError(`${what} has ${key.length} characters; a key has at most ${MAX_KEY_LENGTH}`);
}

const isGiven = (options: CallLinks<never>): boolean =>
  options.after !== undefined ||
  options.onFailure !== undefined ||
  options.waitAtMost !== undefined ||
  options.onTimeout !== undefined ||
  options.missing !== undefined;

function readWait(type: string, base: LinkSettings, options: CallLinks<never>): LinkSettings {
  const what = `task "${type}"`;
  const { after, onFailure, waitAtMost, onTimeout, missing } = options;
  return {
    ...base,
    after: after === undefined ? base.after : readAfter(type, after, base.key),
    onFailure: onFailure === undefined ? base.onFailure : oneOf(onFailure, FAILURE_POLICIES, `onFailure of ${what}`),
    waitAtMost: waitAtMost === undefined ? base.waitAtMost : readWaitAtMost(waitAtMost, what),
    onTimeout: onTimeout === undefined ? base.onTimeout : oneOf(onTimeout, TIMEOUT_POLICIES, `onTimeout of ${what}`),
    missing: missing === undefined ? base.missing : oneOf(missing, MISSING_POLICIES, `missing of ${what}`),
  };
}

function readAfter(type: string, given: unknown, ownKey: KeyFunction<never> | undefined): LinkSettings['after'] {
  const all: readonly unknown[] = Array.isArray(given) ? given : [given];
  if (all.length > MAX_PREREQUISITES) {
    throw new InvalidTaskError(
      `task "${type}" waits for ${all.length.toLocaleString('en-US')} tasks, more than ` +
        `${MAX_PREREQUISITES.toLocaleString('en-US')}; use a batch, or a task that waits for some of them`,
    );
  }
  return all.map((one, index) =>
    readPrerequisite(type, one, ownKey, Array.isArray(given) ? `after[${index}]` : 'after'),
  );
}

function readPrerequisite(
  type: string,
  given: unknown,
  ownKey: KeyFunction<never> | undefined,
  option: string,
): TypePrerequisite | TaskPrerequisite {
  const what = `${option} of task "${type}"`;
  if (typeof given !== 'object' || given === null) {
    const hint = circleHint(given);
    throw new InvalidTaskError(
      `${what} must be a task definition, a TaskInfo or { queue, id }, not ${describe(given)}${hint}`,
    );
  }
  if ('id' in given) return readTask(given, what);
  if (!('task' in given)) return readType(type, given, undefined, ownKey, what);
  rejectUnknownKeys(given, ['task', 'key'], `option of ${what}:`, InvalidTaskError);
  const { task, key } = given as { readonly task: unknown; readonly key?: KeyFunction<never> };
  if (key !== undefined) requireFunction(key, `key in ${what}`, InvalidTaskError);
  return readType(type, task, key, ownKey, what);
}

function readTask(given: object, what: string): TaskPrerequisite {
  refuseHandles(given, what);
  const { queue, id, group } = given as Partial<TaskPrerequisite> & { readonly group?: unknown };
  if (typeof group === 'string' && group !== '') {
    throw new InvalidTaskError(
      `${what} is in the group "${group}": it becomes part of another task, and has no end of its own; enqueue it ` +
        'without a group, or wait for a definition that the @TaskAggregator makes tasks of',
    );
  }
  return {
    queue: refuseBraces(
      name(queue, `queue in ${what}`, `queue in ${what} is blank`),
      `queue in ${what}`,
      InvalidTaskError,
    ),
    id: refuseBraces(name(id, `id in ${what}`, `id in ${what} is blank`), `id in ${what}`, InvalidTaskError),
  };
}

/** Handles of runs and batches have a queue and an id, too. */
function refuseHandles(given: object, what: string): void {
  const { outcome, results, progress } = given as Readonly<Record<string, unknown>>;
  if (typeof outcome === 'function' || typeof results === 'function') {
    throw new InvalidTaskError(
      `${what} is a run of a workflow, not a task; give the definition of its last step a key and rememberFor and wait for that, ` +
        'or add a step to the workflow',
    );
  }
  if (typeof progress !== 'function') return;
  throw new InvalidTaskError(`${what} is a batch, not a task; use onSuccess or onComplete of the batch`);
}

function readType(
  type: string,
  given: unknown,
  key: KeyFunction<never> | undefined,
  ownKey: KeyFunction<never> | undefined,
  what: string,
): TypePrerequisite {
  const task = given as Partial<DefinedTask> | null | undefined;
  if (typeof task !== 'object' || task === null || typeof task.type !== 'string' || task.options === undefined) {
    throw new InvalidTaskError(`${what} must be made by defineTask, not ${describe(given)}`);
  }
  if (!task.links?.key || task.links.rememberFor === 0) {
    throw new InvalidTaskError(
      `${what}: "${task.type}" leaves no trace of its end; define it with key and rememberFor, as in ` +
        `defineTask('${task.type}', { key: (payload) => payload.id, rememberFor: '7d' })`,
    );
  }
  const found = key ?? ownKey;
  if (!found) {
    throw new InvalidTaskError(
      `${what}: which "${task.type}" is meant? Give task "${type}" a key, or say { task, key: (payload) => … }`,
    );
  }
  const prerequisite = { task: task as DefinedTask, key: found, sameKey: key === undefined };
  if (prerequisite.sameKey) refuseCycle(type, prerequisite.task, [type]);
  return prerequisite;
}

/** Follows prerequisites of the same key. Others may be of the same type: each of the one before it, say. */
function refuseCycle(type: string, task: DefinedTask, path: readonly string[]): void {
  const walked = [...path, task.type];
  if (task.type === type) {
    throw new InvalidTaskError(`task "${type}" waits for itself: ${walked.join(' after ')}; leave one of these out`);
  }
  for (const one of task.links?.after ?? []) {
    if (isTypePrerequisite(one) && one.sameKey) refuseCycle(type, one.task, walked);
  }
}

function checkGroup(what: string, links: LinkSettings, group: unknown): LinkSettings {
  if (group === undefined || group === '') return links;
  if (links.after.length > 0) {
    throw new InvalidTaskError(`${what} has both group and after; a task of a group cannot wait for others`);
  }
  if (links.rememberFor === 0) return links;
  throw new InvalidTaskError(
    `${what} has both group and rememberFor; a task of a group becomes part of another and has no end of its own`,
  );
}

function readRememberFor(value: unknown, what: string): number {
  const milliseconds = parseDuration(value, `rememberFor of ${what}`, InvalidTaskError);
  if (milliseconds >= 1000) return ceilSeconds(milliseconds);
  throw new InvalidTaskError(`rememberFor of ${what} must be at least 1 second, not ${describe(value)}`);
}

function readWaitAtMost(value: unknown, what: string): number {
  const milliseconds = parseDuration(value, `waitAtMost of ${what}`, InvalidTaskError);
  if (milliseconds > 0) return milliseconds;
  throw new InvalidTaskError(`waitAtMost of ${what} must be longer than 0, not ${describe(value)}`);
}
