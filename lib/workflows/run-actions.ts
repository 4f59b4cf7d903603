import type { Broker } from '../broker/broker.js';
import { WorkflowNotFoundError, WorkflowStateError } from '../errors.js';
import type { Relay } from '../links/relay.js';

/** What changing a run needs. */
export interface RunDeps {
  readonly broker: Pick<Broker, 'workflows' | 'links' | 'administration' | 'cancellation' | 'clock'>;
  readonly relay: Pick<Relay, 'carry'>;
}

interface StepTask {
  readonly queue: string;
  readonly id: string;
}

/** At most this many tasks are moved by one call. */
const MOVES_PER_CALL = 200;

/**
 * Cancels a run: what waits will not run, tasks that wait are deleted, and those that run are
 * cancelled.
 *
 * @param except the id of a task that is not cancelled
 * @returns whether this call has ended the run; false when it was over
 * @throws WorkflowNotFoundError
 */
export async function cancelRun(
  { broker, relay }: RunDeps,
  queue: string,
  run: string,
  reason = 'the workflow was cancelled',
  except?: string,
): Promise<boolean> {
  const { status, tasks, ...caused } = await broker.workflows.cancel(queue, run, reason);
  relay.carry(caused);
  if (status === 'missing') throw new WorkflowNotFoundError(queue, run);
  if (status === 'ended') return false;
  await eachQueue(
    tasks.filter(({ id }) => id !== except),
    async (name, ids) => {
      const moved = await broker.administration.moveTasks(name, 'delete', ids);
      const active = ids.filter((_, index) => moved[index] === 'active');
      for (const id of active) {
        await broker.cancellation.recordCancellation({ id, at: broker.clock.now(), outcome: 'delete', reason });
        await broker.cancellation.publishCancellation(id);
      }
    },
    { broker, relay },
  );
  return true;
}

/**
 * Runs the failed steps of a run again; what was cancelled because of them waits for them again.
 *
 * @returns how many steps run again
 * @throws WorkflowNotFoundError; WorkflowStateError when no step has failed, or the run was cancelled
 */
export async function retryRun({ broker, relay }: RunDeps, queue: string, run: string): Promise<number> {
  const { status, steps, ...caused } = await broker.workflows.retry(queue, run);
  relay.carry(caused);
  if (status === 'missing') throw new WorkflowNotFoundError(queue, run);
  if (status === 'notFailed') {
    throw new WorkflowStateError(
      `run "${run}" of queue "${queue}" has nothing to retry: no step has failed, or the run was cancelled; start it again with another id`,
    );
  }
  return steps;
}

/**
 * Deletes an ended run with its results and the archived tasks of its steps.
 *
 * @throws WorkflowNotFoundError; WorkflowStateError while it is running
 */
export async function deleteRun({ broker, relay }: RunDeps, queue: string, run: string): Promise<void> {
  const { status, ...caused } = await broker.workflows.delete(queue, run);
  relay.carry(caused);
  if (status === 'missing') throw new WorkflowNotFoundError(queue, run);
  if (status === 'running') {
    throw new WorkflowStateError(`run "${run}" of queue "${queue}" is running; cancel it first`);
  }
}

/** Acts on tasks queue by queue, then has their watchers notified. */
async function eachQueue(
  tasks: readonly StepTask[],
  act: (queue: string, ids: string[]) => Promise<void>,
  { broker, relay }: RunDeps,
): Promise<void> {
  const byQueue = new Map<string, string[]>();
  for (const { queue, id } of tasks) {
    const ids = byQueue.get(queue);
    if (ids) ids.push(id);
    else byQueue.set(queue, [id]);
  }
  for (const [queue, all] of byQueue) {
    for (let from = 0; from < all.length; from += MOVES_PER_CALL) {
      const ids = all.slice(from, from + MOVES_PER_CALL);
      await act(queue, ids);
      relay.carry(await broker.links.check(queue, ids));
    }
  }
}
