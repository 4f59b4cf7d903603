import { finishesWithin } from '../async.js';
import { ShutdownError } from '../errors.js';
import type { Core } from './core.js';

/**
 * How long handlers have, once asked to stop, before their tasks go back to the queue without them.
 */
const ABORT_GRACE_MS = 2_000;
/** How long the last settlements may take. */
const LAST_SETTLE_TIMEOUT_MS = 2_000;
/**
 * How long the loops may take to end and to withdraw: a Redis that hangs must not use up the time
 * until SIGKILL.
 */
const LOOPS_TIMEOUT_MS = 5_000;

/** Claims nothing any more; resolves when nothing runs and everything is settled. */
export async function drain(core: Core): Promise<void> {
  await stopClaiming(core);
  await whenQuiet(core);
}

/**
 * The end of a server. The order matters: each step needs what the later ones take away.
 *
 * @returns how many tasks went back to their queue
 */
export async function shutDown(core: Core): Promise<number> {
  const { events, broker, options } = core.deps;
  let requeued = 0;
  const off = events.on('taskFinished', ({ outcome }) => outcome === 'requeued' && requeued++);
  await stopClaiming(core);
  // Leases, cancellation and the syncer go on while tasks end and are settled.
  const { executor, processor, aggregator, loops } = core;
  if (!(await finishesWithin(whenQuiet(core), options.shutdownTimeout, broker.clock))) {
    events.emit('shutdownTimedOut', { active: executor.running, aggregating: aggregator.size });
    executor.interruptAll(new ShutdownError());
    await finishesWithin(processor.whenQuiet(), ABORT_GRACE_MS, broker.clock);
  }
  executor.requeueAll();
  await finishesWithin(processor.whenSettled(), LAST_SETTLE_TIMEOUT_MS, broker.clock);
  executor.close();
  // Withdraws from the list of servers last, so that readers see the server until it is gone.
  await finishesWithin(loops.stop(), LOOPS_TIMEOUT_MS, broker.clock);
  await core.loopWatch.stop();
  await core.source.close();
  off();
  return requeued;
}

async function stopClaiming({ waker, caller, loops }: Core): Promise<void> {
  waker.stop();
  caller.close();
  await loops.stopForwarding(); // what becomes due belongs to other servers now
}

const whenQuiet = ({ processor, aggregator }: Core): Promise<unknown> =>
  Promise.all([processor.whenQuiet(), aggregator.whenQuiet()]);
