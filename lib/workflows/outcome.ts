import type { StoredResult } from '../broker/broker.js';
import type { RunState, StepState, StoredRun, WorkflowsRole } from '../broker/workflows.js';
import { decodeResult } from '../task/codec.js';

/** What became of a step. */
export type StepOutcome<Result = unknown> =
  | { readonly state: 'succeeded'; readonly result: Result; readonly error?: undefined }
  /** `error`: why it failed, or was cancelled. */
  | { readonly state: Exclude<StepState, 'succeeded'>; readonly error?: string; readonly result?: undefined };

/** What became of a run, and of each step by its name. */
export interface WorkflowOutcome<Steps extends object = Record<string, unknown>> {
  readonly state: RunState;
  readonly steps: { readonly [Name in keyof Steps]: StepOutcome<Steps[Name]> };
}

/** How many results are read in one call. */
const RESULTS_PER_CALL = 500;

/** Each as a property of its own, whatever its name is. */
export function decodeResults(stored: ReadonlyMap<string, StoredResult>): Record<string, unknown> {
  const results: Record<string, unknown> = {};
  for (const [name, result] of stored) {
    const value = decodeResult(result);
    if (name !== '__proto__') results[name] = value;
    else Object.defineProperty(results, name, { value, enumerable: true, configurable: true, writable: true });
  }
  return results;
}

/**
 * The results of steps, by name; those without a result are left out.
 *
 * @param since of the link of a step of the run: what this process has stored is not read then
 */
export async function readResults(
  workflows: Pick<WorkflowsRole, 'results'>,
  queue: string,
  run: string,
  names: readonly string[],
  since?: string,
): Promise<Map<string, unknown>> {
  const results = new Map<string, unknown>();
  for (let from = 0; from < names.length; from += RESULTS_PER_CALL) {
    const page = names.slice(from, from + RESULTS_PER_CALL);
    const stored = await workflows.results(queue, run, page, since);
    for (const [index, name] of page.entries()) {
      if (stored[index] !== undefined) results.set(name, decodeResult(stored[index]));
    }
  }
  return results;
}

export async function readOutcome(
  workflows: Pick<WorkflowsRole, 'results'>,
  { queue, id, state, graph }: StoredRun,
): Promise<WorkflowOutcome> {
  const withResult = graph.filter((step) => step.hasResult).map(({ name }) => name);
  const results = await readResults(workflows, queue, id, withResult);
  const steps: Record<string, StepOutcome> = Object.create(null) as Record<string, StepOutcome>;
  for (const step of graph) {
    steps[step.name] =
      step.state === 'succeeded'
        ? { state: 'succeeded', result: results.get(step.name) }
        : { state: step.state, error: step.error };
  }
  return { state, steps };
}
