import type { Broker } from '../../broker/broker.js';
import type { StoredTask } from '../../broker/inspection.js';
import { toDate } from '../../clock.js';
import { InvalidOptionError, UndecodableMessageError } from '../../errors.js';
import { nearest, requireNonBlank } from '../../validation.js';
import { requireQueueName } from '../known-queue.js';
import { listOpenSteps } from '../steps.js';
import { readWait, type TaskWait } from '../waits.js';
import type { Case } from './case.js';
import { fleetOf } from './fleet.js';
import { keyReasons } from './key-reasons.js';
import { handlerLimits, queueLimits } from './limits.js';
import type { TaskExplanation, TaskReason } from './reasons.js';
import { capacity, obstacles, wrongClocks } from './server-reasons.js';
import { stateReason, tooLate } from './state-reasons.js';
import { explainedReason } from './words.js';

export type ExplainingBroker = Pick<
  Broker,
  'inspection' | 'links' | 'obstacles' | 'fairKeys' | 'checkpoints' | 'clock'
>;

/** Reads what is known of a task and of the servers of its queue, each once, and says what follows. */
export async function explain(broker: ExplainingBroker, queue: string, id: string): Promise<TaskExplanation> {
  requireQueueName(queue);
  requireNonBlank(id, 'task ID', InvalidOptionError);
  const now = broker.clock.now();
  const task = await readTask(broker, queue, id);
  if (!task || 'kind' in task) return explanation({ queue, id, now }, [task ?? (await missing(broker, queue))]);
  const [servers, wait, steps] = await Promise.all([
    broker.obstacles.observeServers(),
    waitOf(broker, task, queue, id),
    task.state === 'scheduled' ? listOpenSteps(broker, queue, id) : [],
  ]);
  const position = await broker.obstacles.position(queue, id);
  const known: Case = { queue, id, task, position, servers, fleet: fleetOf(servers, queue), wait, steps, now };
  return explanation(known, await reasonsOf(broker, known));
}

type Explained = Pick<Case, 'queue' | 'id' | 'now'> & Partial<Pick<Case, 'task'>>;

function explanation({ queue, id, task, now }: Explained, found: readonly TaskReason[]): TaskExplanation {
  const reasons = found.map((reason) => explainedReason(reason, now));
  const summary = reasons[0]!.text;
  return { queue, id, type: task?.message.type, state: task?.state, summary, reasons, timestamp: toDate(now) };
}

/** `undefined` when there is none. */
async function readTask(
  { inspection }: ExplainingBroker,
  queue: string,
  id: string,
): Promise<StoredTask | Extract<TaskReason, { kind: 'damaged' }> | undefined> {
  try {
    return await inspection.getTask(queue, id);
  } catch (error) {
    if (error instanceof UndecodableMessageError) return { kind: 'damaged', error: error.message };
    throw error;
  }
}

async function missing({ inspection }: ExplainingBroker, queue: string): Promise<TaskReason> {
  if (await inspection.hasQueue(queue)) return { kind: 'missing', hasQueue: true, similar: undefined };
  return { kind: 'missing', hasQueue: false, similar: nearest(queue, await inspection.queues()) };
}

function waitOf(
  broker: ExplainingBroker,
  { state }: StoredTask,
  queue: string,
  id: string,
): Promise<TaskWait | undefined> {
  return state === 'waiting' || state === 'archived' ? readWait(broker, queue, id) : Promise.resolve(undefined);
}

async function reasonsOf(broker: ExplainingBroker, known: Case): Promise<TaskReason[]> {
  const { state } = known.task;
  const first = stateReason(known);
  const isOver = state === 'completed' || state === 'archived';
  if (isOver || first?.kind === 'running') return [first!];
  const blocked = [...obstacles(known), ...tooLate(known)];
  const after = [...(await handlerLimits(broker, known)), ...wrongClocks(known)];
  if (first) return [first, ...blocked, ...after];
  if (known.position.waitlist) return [...deferredFirst([...blocked, ...after])];
  const inLine = await keyReasons(broker, known);
  const busy = [...(await queueLimits(broker, known)), ...(await capacity(broker, known, inLine !== undefined))];
  const others = after.filter(({ kind }) => kind !== 'clock');
  const reasons = [...blocked, ...(inLine?.limit ?? []), ...others, ...busy, ...(inLine?.turn ?? [])];
  const clocks = after.filter(({ kind }) => kind === 'clock');
  // Servers of which nothing is known may well take it.
  const isFree = reasons.every(({ kind }) => kind === 'handlersUnknown');
  return isFree ? [{ kind: 'ready' }, ...reasons, ...clocks] : [...reasons, ...clocks];
}

/** A task in a waitlist is held by what put it there; the rest would hold it after that. */
function deferredFirst(reasons: readonly TaskReason[]): TaskReason[] {
  const holds = (reason: TaskReason): boolean => 'deferred' in reason && reason.deferred;
  return [...reasons.filter(holds), ...reasons.filter((reason) => !holds(reason))];
}
