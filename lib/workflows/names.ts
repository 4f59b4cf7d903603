import { InvalidWorkflowError } from '../errors.js';
import { describe } from '../validation.js';

/** The longest name of a workflow, or of a step with the names of the workflows around it. */
export const MAX_NAME_LENGTH = 100;
/** The longest id of a run, without the name of its workflow. */
const MAX_ID_LENGTH = 200;

/** Between the steps of a workflow that is a step itself, and between the name and the id of a run. */
export const SEPARATOR = '/';

const NAME = /^[\p{L}\p{M}\p{N}_.:@-]+$/u;
/** A `~` ends the id of the run in the id of a task: see taskIdOfStep. */
const ID = /^[^{}~\p{C}\p{Z}]+$/u;

/**
 * @param what as in `name of a workflow`
 * @throws InvalidWorkflowError unless it is 1 to 100 letters, digits, or characters of `_ . : @ -`
 */
export function requireName(name: unknown, what: string): string {
  if (typeof name !== 'string') throw new InvalidWorkflowError(`${what} must be a string, not ${describe(name)}`);
  if (name.length > MAX_NAME_LENGTH) {
    throw new InvalidWorkflowError(
      `${what} ${describe(name)} has ${name.length} characters; the most is ${MAX_NAME_LENGTH}, with the names of the workflows around it`,
    );
  }
  if (NAME.test(name)) return name;
  throw new InvalidWorkflowError(
    `${what} ${describe(name)} must be 1 to ${MAX_NAME_LENGTH} letters, digits, or characters of "_.:@-"`,
  );
}

/** @throws InvalidWorkflowError unless the name with the names around it is short enough */
export function requireShort(fullName: string): string {
  if (fullName.length <= MAX_NAME_LENGTH) return fullName;
  throw new InvalidWorkflowError(
    `name of step ${describe(fullName)} has ${fullName.length} characters; the most is ${MAX_NAME_LENGTH}, with the names of the workflows around it`,
  );
}

/** The id of a run in the store: no name of a workflow has the separator. */
export const runIdOf = (workflow: string, id: string): string => `${workflow}${SEPARATOR}${id}`;

/** The name of the workflow of a run. */
export const workflowOf = (run: string): string => run.slice(0, run.indexOf(SEPARATOR));

/** @throws InvalidWorkflowError unless it is 1 to 200 characters, none of them a space, a control, a brace or a ~ */
export function requireRunId(id: unknown): string {
  if (typeof id !== 'string') {
    throw new InvalidWorkflowError(`id of a run must be a string, not ${describe(id)}`);
  }
  if (id.length <= MAX_ID_LENGTH && ID.test(id)) return id;
  throw new InvalidWorkflowError(
    `id of a run ${describe(id)} must be 1 to ${MAX_ID_LENGTH} characters without white space, controls, braces and ~`,
  );
}
