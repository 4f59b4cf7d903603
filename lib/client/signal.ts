import type { Broker } from '../broker/broker.js';
import { MAX_SIGNALS } from '../broker/checkpoints.js';
import type { Preparer } from '../enqueue/preparer.js';
import { InvalidTaskError, TaskNotFoundError, TaskStateError } from '../errors.js';
import { encodeJson } from '../task/codec.js';
import type { TaskDefinition } from '../task/definition.js';
import { requirePayloadSize } from '../task/payload-size.js';
import { requireStepName, type SignalDefinition } from '../task/signal.js';
import { rejectUnknownKeys, requireObject, requireNonBlank } from '../validation.js';
import { readTaskPlace } from './task-place.js';

/** A task by the business id of its definition. */
export interface TaskKey {
  /** As the `key` of its definition, or of its call, has it. */
  key: string;
  /** Default: that of the definition, or the default queue. */
  queue?: string;
}

export interface SignalDeps {
  readonly broker: Pick<Broker, 'checkpoints' | 'uniqueness' | 'maxPayloadSize'>;
  readonly preparer: Preparer;
}

/** Task, signal and payload; or definition, key, signal and payload. */
export type SignalArguments = readonly [task: unknown, second: unknown, third?: unknown, fourth?: unknown];

/** @throws TaskNotFoundError, TaskStateError or InvalidTaskError */
export async function sendSignal(deps: SignalDeps, [task, second, third, fourth]: SignalArguments): Promise<void> {
  const isByKey = typeof task === 'object' && task !== null && 'type' in task && !('id' in task);
  const [signal, payload] = isByKey ? [third, fourth] : [second, third];
  const name = requireStepName(
    (requireObject(signal, 'signal', InvalidTaskError) as SignalDefinition).name,
    'name of a signal',
  );
  const { checkpoints, maxPayloadSize } = deps.broker;
  const bytes = requirePayloadSize(encode(payload, name), maxPayloadSize, `payload of signal "${name}"`);
  const { queue, id } = isByKey
    ? await findByKey(deps, task as TaskDefinition, second)
    : readTaskPlace(task, 'task to signal');
  const status = await checkpoints.signal(queue, id, name, bytes);
  if (status === 'missing') throw new TaskNotFoundError(queue, id);
  if (status === 'stored') return;
  const why = status === 'over' ? 'it has succeeded, or is archived' : `it has ${MAX_SIGNALS} of them, the most`;
  throw new TaskStateError(`task ${JSON.stringify(id)} cannot get the signal "${name}": ${why}`);
}

async function findByKey(
  { broker, preparer }: SignalDeps,
  definition: TaskDefinition,
  given: unknown,
): Promise<{ readonly queue: string; readonly id: string }> {
  const what = `the task "${definition.type}" to signal`;
  const { key, queue, ...rest } = requireObject(given, what, InvalidTaskError) as TaskKey;
  rejectUnknownKeys(rest, ['key', 'queue'], `key of ${what}:`, InvalidTaskError);
  requireNonBlank(key, `key of ${what}`, InvalidTaskError);
  if (queue !== undefined) requireNonBlank(queue, `queue of ${what}`, InvalidTaskError);
  const known = preparer.byKey(definition, key, queue);
  if (known.id !== undefined) return known;
  const [held] = await broker.uniqueness.describe(known.queue, [known.lock]);
  if (!held) throw new TaskNotFoundError(known.queue, key, 'key');
  return { queue: known.queue, id: held.owner.id };
}

function encode(payload: unknown, name: string): Buffer {
  try {
    return Buffer.from((encodeJson(payload) ?? '') as string);
  } catch (error) {
    throw new InvalidTaskError(`payload of signal "${name}" cannot be encoded: ${(error as Error).message}`, {
      cause: error,
    });
  }
}
