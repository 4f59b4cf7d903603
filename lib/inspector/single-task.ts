import { ceilSeconds } from '../clock.js';
import { type Duration, parseDuration } from '../duration.js';
import type { Broker } from '../broker/broker.js';
import type { MoveStatus, TaskLocation, MoveAction } from '../broker/inspection.js';
import {
  ArchiveFullError,
  type AsynqError,
  InvalidOptionError,
  InvalidTaskError,
  TaskNotFoundError,
  TaskStateError,
} from '../errors.js';
import { jsonCodec } from '../task/codec.js';
import { requirePayloadSize } from '../task/payload-size.js';
import { describe, rejectUnknownKeys, requireNonBlank, requireObject } from '../validation.js';
import { requireArchiveLimit } from './archive-limit.js';
import { requireQueue } from './known-queue.js';
import { type ArchiveOptions, type MoveOptions, toOrigin } from './move-options.js';
import { type EndNotice, notifyOfEnds } from './waits.js';

type ChangingBroker = Pick<Broker, 'inspection' | 'administration'>;
type LinkedBroker = ChangingBroker & Pick<Broker, 'links'>;

/** Runs, archives or deletes one task. @throws TaskNotFoundError; TaskStateError; ArchiveFullError */
export async function moveTask(
  broker: LinkedBroker,
  relay: EndNotice['relay'],
  queue: string,
  action: MoveAction,
  id: string,
  options: ArchiveOptions = {},
): Promise<void> {
  requireNonBlank(id, 'task ID', InvalidOptionError);
  const from = toOrigin(`${action}Task`, options, action === 'archive' ? ['maxArchived'] : []);
  requireArchiveLimit(options);
  const { maxArchived } = options;
  await requireQueue(broker.inspection, queue);
  const [status] = await broker.administration.moveTasks(queue, action, [id], from, maxArchived);
  if (status === 'full') throw new ArchiveFullError(queue, maxArchived ?? 0);
  if (status !== 'moved') throw refusal(action, status ?? 'missing', queue, id, from);
  if (action !== 'run') await notifyOfEnds({ broker, relay }, queue, [id]);
}

const describeLocation = ({ state, group }: TaskLocation): string =>
  group === undefined ? `state ${state}` : `group "${group}"`;

/** Changes the time at which a task runs. @throws TaskNotFoundError; TaskStateError */
export async function rescheduleTask(
  broker: ChangingBroker & Pick<Broker, 'clock'>,
  queue: string,
  id: string,
  when: Date | Duration,
  options: MoveOptions = {},
): Promise<void> {
  requireNonBlank(id, 'task ID', InvalidOptionError);
  const at = ceilSeconds(toTime(when, broker.clock.now()));
  const from = toOrigin('rescheduleTask', options);
  await requireQueue(broker.inspection, queue);
  const [status] = await broker.administration.rescheduleTasks(queue, [id], at, from);
  if (status !== 'moved') throw refusal('reschedule', status ?? 'missing', queue, id, from);
}

/** @returns milliseconds since the epoch */
function toTime(when: Date | Duration, now: number): number {
  if (!(when instanceof Date)) {
    return Math.max(0, now + parseDuration(when, 'the time to reschedule to', InvalidOptionError));
  }
  const time = when.getTime();
  if (time >= 0) return time;
  throw new InvalidOptionError(`the time to reschedule to must be a valid Date from 1970 on, not ${describe(when)}`);
}

export interface UpdatePayloadOptions {
  /** The payload to replace, as the caller saw it. A payload that was changed meanwhile stays. */
  readonly replaces?: Uint8Array;
}

/** Replaces the payload of a waiting task. @throws TaskNotFoundError; TaskStateError; InvalidTaskError */
export async function updatePayload(
  broker: ChangingBroker & Pick<Broker, 'maxPayloadSize'>,
  queue: string,
  id: string,
  payload: unknown,
  options: UpdatePayloadOptions = {},
): Promise<void> {
  requireNonBlank(id, 'task ID', InvalidOptionError);
  const replaces = toOldPayload(options);
  const bytes = requirePayloadSize(encode(payload), broker.maxPayloadSize, `the payload of task "${id}"`);
  await requireQueue(broker.inspection, queue);
  const status = await broker.administration.updatePayload(queue, id, bytes, replaces);
  if (status === 'missing') throw new TaskNotFoundError(queue, id);
  if (status === 'notEditable') {
    throw new TaskStateError(
      `the payload of task "${id}" cannot be changed now: the task must be scheduled, pending, held, to be retried, archived or waiting`,
    );
  }
  if (status === 'different') {
    throw new TaskStateError(
      `the payload of task "${id}" is not the one to replace: it was changed meanwhile; read the task again`,
    );
  }
  if (status === 'changed') {
    throw new TaskStateError('others kept changing the task; try again');
  }
}

/** @throws InvalidOptionError */
function toOldPayload(options: UpdatePayloadOptions): Buffer | undefined {
  requireObject(options, 'the options of updateTaskPayload', InvalidOptionError);
  rejectUnknownKeys(options, ['replaces'], 'option of updateTaskPayload', InvalidOptionError);
  const { replaces } = options;
  if (replaces === undefined) return undefined;
  if (!(replaces instanceof Uint8Array)) {
    throw new InvalidOptionError(`replaces must be bytes such as TaskInfo.payload, not ${describe(replaces)}`);
  }
  return Buffer.from(replaces.buffer, replaces.byteOffset, replaces.byteLength);
}

function encode(payload: unknown): Buffer {
  try {
    return Buffer.from(jsonCodec.encode(payload) ?? []);
  } catch (error) {
    throw new InvalidTaskError(`the payload cannot be stored: ${(error as Error).message}`, { cause: error });
  }
}

/** Why a task was not moved, with asynq's texts (wire-protocol appendix B). */
function refusal(
  action: MoveAction | 'reschedule',
  status: MoveStatus,
  queue: string,
  id: string,
  from: TaskLocation | undefined,
): AsynqError {
  switch (status) {
    case 'active':
      if (action === 'run') return new TaskStateError('task is already running');
      return new TaskStateError(`cannot ${action} task in active state. use cancelProcessing instead.`);
    case 'same':
      if (action === 'run') return new TaskStateError('task is already in pending state');
      return new TaskStateError(`task is already archived: id=${id}, queue=${queue}`);
    case 'claimed':
      return new TaskStateError(
        `the group of task "${id}" is being aggregated; within two minutes it is free again or gone`,
      );
    case 'waiting':
      return new TaskStateError(
        `task "${id}" waits for other tasks, so it cannot get a time; run it (it skips its wait), or archive or delete it`,
      );
    case 'elsewhere':
      if (from) return new TaskStateError(`task "${id}" is not in ${describeLocation(from)} any more`);
      return new TaskStateError(`task "${id}" is not in the list of its state; check what else writes to its queue`);
    default:
      return new TaskNotFoundError(queue, id);
  }
}
