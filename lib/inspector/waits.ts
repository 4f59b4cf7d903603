import type { Broker } from '../broker/broker.js';
import type { EdgeState, Prerequisite } from '../broker/links.js';
import { toDate } from '../clock.js';
import { InvalidOptionError } from '../errors.js';
import type { Relay } from '../links/relay.js';
import type { FailurePolicy, TimeoutPolicy } from '../task/links.js';
import { requireNonBlank } from '../validation.js';
import { requireQueueName } from './known-queue.js';

/** One of those that a task waits for: a task, or the end of the task of a type with a key. */
export interface WaitedFor {
  readonly prerequisite: Prerequisite;
  readonly state: 'waiting' | 'succeeded' | 'failed';
  /** Why it failed; `undefined` if it has not. */
  readonly reason: string | undefined;
  /** It is a task that has not ended, in a queue that is paused. False also when its queue is not known. */
  readonly paused: boolean;
}

/** What a task waits for, or has waited for. */
export interface TaskWait {
  /** In the order of the option `after`. */
  readonly prerequisites: readonly WaitedFor[];
  readonly onFailure: FailurePolicy;
  readonly onTimeout: TimeoutPolicy;
  /** The end of the wait, whatever happens; `undefined` when the task does not wait any more. */
  readonly until: Date | undefined;
  /** It is archived because a prerequisite failed, and revived when that one succeeds after all. */
  readonly cancelled: boolean;
}

/** Of so many queues of prerequisites it is asked whether they are paused. */
const MAX_QUEUES = 20;

/** `undefined` for a task that has never waited, or does not exist. */
export async function readWait(
  { links, inspection }: Pick<Broker, 'links' | 'inspection'>,
  queue: string,
  id: string,
): Promise<TaskWait | undefined> {
  requireQueueName(queue);
  requireNonBlank(id, 'task ID', InvalidOptionError);
  const stored = await links.waitOf(queue, id);
  if (!stored) return undefined;
  const { edges, onFailure, onTimeout, deadline, cancelled } = stored;
  const paused = await pausedQueues(inspection, edges);
  return {
    prerequisites: edges.map(({ prerequisite, state, reason }) => {
      const isPaused = state === 'waiting' && 'id' in prerequisite && paused.has(prerequisite.queue);
      return { prerequisite, state, reason, paused: isPaused };
    }),
    onFailure,
    onTimeout,
    until: deadline === undefined ? undefined : toDate(deadline * 1000),
    cancelled,
  };
}

async function pausedQueues(inspection: Broker['inspection'], edges: readonly EdgeState[]): Promise<Set<string>> {
  const open = edges.flatMap(({ state, prerequisite }) =>
    state === 'waiting' && 'id' in prerequisite ? [prerequisite.queue] : [],
  );
  const queues = [...new Set(open)].slice(0, MAX_QUEUES);
  const found = await Promise.all(queues.map((queue) => inspection.describeQueue(queue)));
  return new Set(queues.filter((_, index) => found[index]!.paused));
}

/** What it takes to notify those that wait for tasks of an operator's action on them. */
export interface EndNotice {
  readonly broker: Pick<Broker, 'links'>;
  readonly relay: Pick<Relay, 'carry'>;
}

/**
 * Notifies the watchers of tasks that were archived or deleted. In a queue without links it costs one short command.
 * If it fails, the keepers of the fleet find the tasks within seconds.
 */
export async function notifyOfEnds({ broker, relay }: EndNotice, queue: string, ids: readonly string[]): Promise<void> {
  if (ids.length === 0) return;
  const caused = await broker.links.check(queue, ids).catch(() => undefined);
  if (caused) relay.carry(caused);
}
