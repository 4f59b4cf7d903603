import { FAILURE_POLICIES, type FailurePolicy } from '../broker/links.js';
import { InvalidWorkflowError } from '../errors.js';
import { FOREIGN } from '../foreign-names.js';
import type { TaskDefinition } from '../task/definition.js';
import { TASK_OPTION_NAMES } from '../task/options.js';
import { applyOptions, DEFAULT_SETTINGS } from '../task/settings.js';
import { circleHint, describe, nearest, rejectUnknownKeys, requireObject } from '../validation.js';
import { endsOf, type Step } from './graph.js';
import { requireShort, SEPARATOR } from './names.js';
import type { AddedSteps } from './step-list.js';
import type { NestedOptions, StepOptions } from './types.js';

const STEP_OPTION_NAMES = [
  'after',
  'onFailure',
  'optional',
  'options',
] as const satisfies readonly (keyof StepOptions)[];
const NESTED_OPTION_NAMES = ['after', 'onFailure'] as const satisfies readonly (keyof NestedOptions)[];

const Failure = InvalidWorkflowError;

/**
 * @param label the step, for messages
 * @throws InvalidWorkflowError; InvalidTaskError for a wrong option of the task
 */
export function toStep(name: string, task: unknown, payload: unknown, given: unknown, label: string): Step {
  const options = readOptions<StepOptions>(given, STEP_OPTION_NAMES, label);
  if (typeof task !== 'string' && (typeof task !== 'object' || task === null)) {
    const hint = circleHint(task);
    throw new Failure(`${label} must be a task definition, a type name or a workflow, not ${describe(task)}${hint}`);
  }
  const { optional = false } = options;
  if (typeof optional !== 'boolean') {
    throw new Failure(`optional of ${label} must be true or false, not ${describe(optional)}`);
  }
  return {
    name,
    task: task as string | TaskDefinition,
    payload,
    after: toNames(options.after, label),
    onFailure: toPolicy(options.onFailure, label) ?? 'cancel',
    optional,
    options: toTaskOptions(options.options, label),
  };
}

/** What is read of a workflow that is a step. */
interface Nested {
  readonly steps: readonly Step[];
  readonly ends: ReadonlyMap<string, readonly string[]>;
}

/**
 * The steps of a workflow that is a step of another. Without any it stands for what it waits for.
 *
 * @throws InvalidWorkflowError
 */
export function toNested(name: string, { steps, ends }: Nested, given: unknown, label: string): AddedSteps {
  const options = readOptions<NestedOptions>(given, NESTED_OPTION_NAMES, label);
  const before = toNames(options.after, label);
  const policy = toPolicy(options.onFailure, label);
  const full = (inner: string): string => requireShort(`${name}${SEPARATOR}${inner}`);
  const placed = steps.map((step) => {
    const isFirst = step.after.length === 0;
    const onFailure = isFirst && policy !== undefined ? policy : step.onFailure;
    return { ...step, name: full(step.name), after: isFirst ? before : step.after.map(full), onFailure };
  });
  const inner = Array.from(
    ends,
    ([group, names]) => [full(group), names.length === 0 ? before : names.map(full)] as const,
  );
  const last = steps.length === 0 ? before : endsOf(steps).map(full);
  return { steps: placed, ends: new Map([[name, last], ...inner]) };
}

function readOptions<T extends object>(given: unknown, known: readonly string[], label: string): T {
  if (given === undefined) return {} as T;
  const options = requireObject(given, `options of ${label}`, Failure);
  for (const key of Object.keys(options)) {
    const isTaskOption = !known.includes(key) && (TASK_OPTION_NAMES as readonly string[]).includes(key);
    if (isTaskOption && known.includes('options')) {
      throw new Failure(`${label}: "${key}" is an option of its task; give it as options: { ${key}: … }`);
    }
  }
  rejectUnknownKeys(options, known, `option of ${label}:`, Failure, FOREIGN.step);
  return options as T;
}

function toNames(after: unknown, label: string): readonly string[] {
  if (after === undefined) return [];
  const names: readonly unknown[] = Array.isArray(after) ? after : [after];
  const wrong = names.find((name) => typeof name !== 'string');
  if (wrong !== undefined || names.includes(undefined)) {
    throw new Failure(`after of ${label} must be the name of a step or an array of names, not ${describe(wrong)}`);
  }
  return [...new Set(names as readonly string[])];
}

function toPolicy(policy: unknown, label: string): FailurePolicy | undefined {
  if (policy === undefined || FAILURE_POLICIES.includes(policy as FailurePolicy)) return policy as FailurePolicy;
  const near = typeof policy === 'string' ? nearest(policy, FAILURE_POLICIES) : undefined;
  const remedy = near ? `did you mean "${near}"?` : `known are ${FAILURE_POLICIES.join(', ')}`;
  throw new Failure(`onFailure of ${label} is ${describe(policy)}; ${remedy}`);
}

const REFUSED: Readonly<Record<string, string>> = {
  taskId: 'the run gives it its id',
  group: 'the tasks of a group become another task, which is no step',
  after: 'write it beside options, as { after: …, options: { … } }',
  onFailure: 'write it beside options, as { onFailure: …, options: { … } }',
  waitAtMost: 'give the workflow a timeout, or the step a deadline',
  onTimeout: 'give the workflow a timeout, or the step a deadline',
  missing: 'it waits for steps of its run, which are there',
};

function toTaskOptions(options: unknown, label: string): Step['options'] {
  if (options === undefined) return undefined;
  const given = requireObject(options, `task options of ${label}`, Failure) as Record<string, unknown>;
  for (const [key, why] of Object.entries(REFUSED)) {
    if (given[key] !== undefined) throw new Failure(`${label} cannot have the option ${key}: ${why}`);
  }
  applyOptions(DEFAULT_SETTINGS, given);
  return given;
}
