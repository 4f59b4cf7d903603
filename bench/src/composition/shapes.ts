/** What a composition run adds and runs. */
export interface Shape {
  /** `flow`: one parent that waits for `size` children; `chain`: `size` steps, one after the other. */
  readonly kind: 'flow' | 'chain';
  readonly size: number;
  /** How many of them. */
  readonly count: number;
}

/** Tasks of one flow or chain. */
export const tasksOf = ({ kind, size }: Shape): number => (kind === 'flow' ? size + 1 : size);

/** A queue system that can make tasks wait for tasks. It runs in its own process on the Redis of the run. */
export interface Composer {
  /** Adds flows or chains in the way that the system offers for many. */
  add(shape: Shape): Promise<void>;
  /**
   * Starts to run tasks. The last task of each flow or chain reads the results of those before it, and
   * checks how many there are.
   *
   * @param onTask called for each task that has run; @param onEnd for each last one
   */
  work(concurrency: number, onTask: () => void, onEnd: () => void): Promise<void>;
  close(): Promise<void>;
}
