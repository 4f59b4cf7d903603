import { InvalidWorkflowError } from '../errors.js';
import type { Step } from './graph.js';

/** What one call of `add` adds. */
export interface AddedSteps {
  readonly steps: readonly Step[];
  /** Names of workflows, each with the steps at its end. */
  readonly ends?: ReadonlyMap<string, readonly string[]>;
}

/**
 * The steps of one version of a workflow. Versions share one array, each its first `length` items,
 * as long as only the newest is added to: the last of many steps costs the same as the first.
 */
export class StepList {
  constructor(
    private readonly shared: Step[] = [],
    /** The index of each name in the array. */
    private readonly indexes = new Map<string, number>(),
    readonly ends: ReadonlyMap<string, readonly string[]> = new Map(),
    private readonly length = 0,
  ) {}

  get steps(): readonly Step[] {
    return this.shared.length === this.length ? this.shared : this.shared.slice(0, this.length);
  }

  /**
   * A list with more steps; this one stays as it is.
   *
   * @param label what is added, for messages
   * @throws InvalidWorkflowError when a name is taken
   */
  with({ steps, ends }: AddedSteps, label: string): StepList {
    for (const name of [...steps.map(({ name }) => name), ...(ends?.keys() ?? [])]) this.requireFree(name, label);
    const isNewest = this.shared.length === this.length;
    const shared = isNewest ? this.shared : [...this.steps];
    const indexes = isNewest ? this.indexes : new Map(shared.map(({ name }, index) => [name, index]));
    for (const step of steps) {
      indexes.set(step.name, shared.length);
      shared.push(step);
    }
    return new StepList(shared, indexes, ends ? new Map([...this.ends, ...ends]) : this.ends, shared.length);
  }

  private requireFree(name: string, label: string): void {
    const index = this.indexes.get(name);
    const taken = (index !== undefined && index < this.length) || this.ends.has(name);
    if (taken)
      throw new InvalidWorkflowError(`${label}: the name "${name}" is taken; give each step a name of its own`);
  }
}
