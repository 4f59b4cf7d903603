import type { LeasedTask } from '../broker/broker.js';
import type { TaskOutcome } from '../events/events.js';
import type { Attempts } from './attempt/attempts.js';
import type { Core } from './core.js';
import { Canceller } from './loops/canceller.js';
import { checkQueue } from './options.js';

/**
 * One pass of a server that was not started: ends waits that are over, moves due tasks to pending,
 * makes tasks of due groups, and claims up to `concurrency` tasks. Resolves when their handlers
 * have started.
 */
export async function takeOnce({ queues, deps, loops, aggregator, processor }: Core): Promise<void> {
  await loops.linkKeeper.runByHand();
  await deps.relay.idle();
  for (const queue of queues.names()) {
    await deps.broker.maintenance.forward(queue);
    await deps.broker.groups.reclaimStaleSets(queue);
  }
  await aggregator.runDue();
  await processor.takeOnce();
}

/** One pass whose tasks are run and settled. */
export const runOnce = (core: Core): Promise<TaskOutcome[]> =>
  outcomesOf(core, async () => {
    await takeOnce(core);
    await core.processor.whenQuiet();
  });

/** Runs and settles one task that the caller has leased. `undefined`: it was deferred. */
export async function work(core: Core, leased: LeasedTask): Promise<TaskOutcome | undefined> {
  const { queues, executor, processor } = core;
  const { queue: name, id } = leased.lease;
  const served = queues.get(name);
  const queue = served ?? queues.add(name, checkQueue(name, 1));
  const outcomes = await outcomesOf(core, async () => {
    executor.execute(queue, leased);
    await processor.whenQuiet();
  });
  if (!served) queues.remove(name);
  return outcomes.find(({ task }) => task.id === id);
}

/**
 * Cancels running tasks as their cancellations arrive, for a server whose loops do not run. Each
 * message has a canceller that sees the tasks of its id only: where the clock stands still, a task
 * cancelled while it was pending seems to have begun by then.
 */
export function cancelByHand({ deps, executor }: Core): void {
  const { broker, events } = deps;
  const onCancel = (id: string): void => {
    const attempts: Attempts = {
      held: () => [...executor.held()].filter((task) => task.id === id),
      fail: (task, reason) => executor.fail(task, reason),
      lose: (task) => executor.lose(task),
    };
    const canceller = new Canceller({ broker, attempts });
    if (!canceller.receive(id)) return;
    canceller.runOnce().catch((error: unknown) => events.emit('loopFailed', { loop: 'canceller', error }));
  };
  // Fails when the broker is closed: then nothing runs.
  broker.cancellation.subscribeCancellations(onCancel).catch(() => undefined);
}

async function outcomesOf({ deps }: Core, run: () => Promise<void>): Promise<TaskOutcome[]> {
  const outcomes: TaskOutcome[] = [];
  const off = deps.events.on('taskFinished', (outcome) => outcomes.push(outcome));
  await run().finally(off);
  return outcomes;
}
