import type { InspectorBroker, MoveStatus, Place, TaskAction } from '../broker/inspection.js';
import { type AsynqError, InvalidOptionError, InvalidTaskError, TaskNotFoundError, TaskStateError } from '../errors.js';
import { jsonCodec } from '../task/codec.js';
import { requireNonBlank } from '../validation.js';
import { requireQueue } from './known-queue.js';
import { type MoveOptions, toOrigin } from './move-options.js';

/** Runs, archives or deletes one task, or says why not. */
export async function moveTask(
  broker: InspectorBroker,
  queue: string,
  action: TaskAction,
  id: string,
  options: MoveOptions = {},
): Promise<void> {
  requireNonBlank(id, 'task ID', InvalidOptionError);
  const from = toOrigin(`${action}Task`, options);
  await requireQueue(broker, queue);
  const [status] = await broker.moveTasks(queue, action, [id], from);
  if (status === 'elsewhere' && from) throw new TaskStateError(`task "${id}" is not in ${wordPlace(from)} any more`);
  if (status !== 'moved') throw refusal(action, status ?? 'missing', queue, id);
}

const wordPlace = ({ state, group }: Place): string => (group === undefined ? `state ${state}` : `group "${group}"`);

/** Gives a scheduled task another payload. */
export async function updatePayload(
  broker: InspectorBroker,
  queue: string,
  id: string,
  payload: unknown,
): Promise<void> {
  requireNonBlank(id, 'task ID', InvalidOptionError);
  const bytes = encode(payload);
  await requireQueue(broker, queue);
  const status = await broker.updatePayload(queue, id, bytes);
  if (status === 'missing') throw new TaskNotFoundError(queue, id);
  if (status === 'notScheduled') throw new TaskStateError('cannot update task that is not in scheduled state.');
  if (status === 'changed') {
    throw new TaskStateError('the task was changed by others again and again; try it once more');
  }
}

function encode(payload: unknown): Buffer {
  try {
    return Buffer.from(jsonCodec.encode(payload) ?? []);
  } catch (error) {
    throw new InvalidTaskError(`the payload cannot be stored: ${(error as Error).message}`, { cause: error });
  }
}

/** Why a task was not moved, in asynq's words (wire-protocol appendix B). */
function refusal(action: TaskAction, status: MoveStatus, queue: string, id: string): AsynqError {
  switch (status) {
    case 'active':
      if (action === 'run') return new TaskStateError('task is already running');
      return new TaskStateError(`cannot ${action} task in active state. use cancelProcessing instead.`);
    case 'same':
      if (action === 'run') return new TaskStateError('task is already in pending state');
      return new TaskStateError(`task is already archived: id=${id}, queue=${queue}`);
    case 'claimed':
      return new TaskStateError(
        `the group of task "${id}" is being aggregated; it is free again within two minutes, or gone`,
      );
    case 'elsewhere':
      return new TaskStateError(`task "${id}" is not listed where its state says; see what else writes to its queue`);
    default:
      return new TaskNotFoundError(queue, id);
  }
}
