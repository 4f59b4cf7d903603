import { findCycle } from '../broker/cycles.js';
import type { FailurePolicy } from '../broker/links.js';
import { InvalidWorkflowError } from '../errors.js';
import type { TaskDefinition } from '../task/definition.js';
import { nearest } from '../validation.js';
import type { StepTaskOptions } from './types.js';

export const MAX_STEPS = 10_000;
const MAX_EDGES = 100_000;

/** A step as it was added. */
export interface Step {
  /** With the names of the workflows around it: `ship/pack`. */
  readonly name: string;
  readonly task: string | TaskDefinition;
  readonly payload: unknown;
  /** Names of steps and of workflows that are steps, in the order given, each once. */
  readonly after: readonly string[];
  readonly onFailure: FailurePolicy;
  readonly optional: boolean;
  readonly options: StepTaskOptions | undefined;
}

/**
 * Resolves the names of workflows to their ends, and checks the graph.
 *
 * @param ends the steps that a name of a workflow stands for
 * @throws InvalidWorkflowError
 */
export function toGraph(
  workflow: string,
  steps: readonly Step[],
  ends: ReadonlyMap<string, readonly string[]>,
): Step[] {
  const what = `workflow "${workflow}"`;
  if (steps.length === 0)
    throw new InvalidWorkflowError(`${what} has no steps; add one, and keep what add returns: it is a new workflow`);
  if (steps.length > MAX_STEPS) throw tooMany(what, steps.length, 'steps', MAX_STEPS);
  const names = new Set(steps.map(({ name }) => name));
  let edges = 0;
  const graph = steps.map((step) => {
    const after = resolve(step, what, names, ends);
    edges += after.length;
    return after === step.after ? step : { ...step, after };
  });
  if (edges > MAX_EDGES) throw tooMany(what, edges, 'edges', MAX_EDGES);
  requireNoCycle(graph, what);
  return graph;
}

/**
 * @param what the workflow or the step, for the message
 * @throws InvalidWorkflowError when steps wait for each other in a circle
 */
export function requireNoCycle(steps: readonly Step[], what: string): void {
  const cycle = findCycle(steps);
  if (cycle) throw circular(what, cycle);
}

const circular = (what: string, cycle: readonly string[]): InvalidWorkflowError =>
  new InvalidWorkflowError(`${what} has a cycle, so that none of it could run: ${cycle.join(' → ')}`);

function tooMany(what: string, count: number, things: string, most: number): InvalidWorkflowError {
  const [given, allowed] = [count, most].map((number) => number.toLocaleString('en-US'));
  return new InvalidWorkflowError(
    `${what} has ${given} ${things}; the most is ${allowed}. Use a batch for many equal tasks`,
  );
}

function resolve(
  { name, after }: Step,
  what: string,
  names: ReadonlySet<string>,
  ends: ReadonlyMap<string, readonly string[]>,
): readonly string[] {
  if (after.every((other) => names.has(other))) return after;
  // By name of a workflow; undefined while that is being resolved.
  const resolved = new Map<string, readonly string[] | undefined>();
  const expand = (other: string): readonly string[] => {
    if (names.has(other)) return [other];
    const found = ends.get(other);
    if (!found) throw unknownStep(name, what, other, [...names, ...ends.keys()]);
    if (!resolved.has(other)) {
      resolved.set(other, undefined);
      // A workflow without steps stands for what it waits for, which may be another one.
      resolved.set(other, [...new Set(found.flatMap(expand))]);
    }
    const known = resolved.get(other);
    if (known) return known;
    throw circular(what, [...[...resolved.keys()].filter((key) => !resolved.get(key)), other]);
  };
  return [...new Set(after.flatMap(expand))];
}

function unknownStep(name: string, what: string, other: string, names: readonly string[]): InvalidWorkflowError {
  const others = names.filter((known) => known !== name);
  const near = nearest(other, others);
  const known = others.length === 0 ? 'it is the only step' : `known are ${others.slice(0, 20).join(', ')}`;
  const remedy = near === undefined ? known : `did you mean "${near}"?`;
  return new InvalidWorkflowError(`step "${name}" of ${what} is after an unknown step "${other}"; ${remedy}`);
}

/** The steps that nothing waits for. */
export function endsOf(steps: readonly Step[]): string[] {
  const awaited = new Set(steps.flatMap(({ after }) => after));
  return steps.filter(({ name }) => !awaited.has(name)).map(({ name }) => name);
}
