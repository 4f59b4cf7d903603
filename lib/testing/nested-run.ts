import { AsyncLocalStorage } from 'node:async_hooks';
import { TestingError } from '../errors.js';
import type { InMemoryBroker } from './in-memory-broker.js';
import { nestedRun } from './testing.messages.js';

interface Run {
  readonly broker: InMemoryBroker;
  over: boolean;
}

/**
 * The runs that the calling code belongs to: handlers, aggregators and listeners belong to the run
 * that started them.
 */
const runs = new AsyncLocalStorage<readonly Run[]>();

/**
 * Runs `work`, which waits for the handlers of the broker.
 *
 * @param method the name of the tester's method
 * @throws TestingError inside such a run: a handler would wait for its own end
 */
export async function runUnnested<T>(broker: InMemoryBroker, method: string, work: () => Promise<T>): Promise<T> {
  const outer = runs.getStore() ?? [];
  if (outer.some((run) => run.broker === broker && !run.over)) throw new TestingError(nestedRun(method));
  const run: Run = { broker, over: false };
  try {
    return await runs.run([...outer, run], work);
  } finally {
    run.over = true;
  }
}
