import type { Broker } from '../broker/broker.js';
import type { ListedTask } from '../broker/inspection.js';
import { type Duration, parseDuration } from '../duration.js';
import { InvalidOptionError } from '../errors.js';
import type { TaskInfo } from '../task/info.js';
import { describe, requireFunction, requireNonBlank, requirePlainObject } from '../validation.js';
import type { TaskState } from '../wire/states.js';

/** A value of a field of a payload. */
export type FieldValue = string | number | boolean | null;

/** Which tasks are meant: those that match all that is given. */
export interface TaskCriteria {
  /** The start of the type: `email:` finds `email:welcome`. */
  readonly type?: string;
  /** The start of the id. */
  readonly id?: string;
  /**
   * Text in the payload, as it is stored; or fields of a JSON payload and their values: `{ 'order.id': 17 }`. A payload that is no
   * JSON has no fields.
   */
  readonly payload?: string | Readonly<Record<string, FieldValue>>;
  /** Text in the last error. */
  readonly error?: string;
  /**
   * In its state for this long at least: pending, active, archived or completed since then, or last failed then when it is to be
   * retried. A task of which that is not known does not match. Not for other states, of which nobody stores it.
   */
  readonly olderThan?: Duration;
  /** Any other condition: called for every task that matches the others, so it must be fast. What it throws ends the call. */
  readonly where?: (task: TaskInfo) => boolean;
}

const TEXTS = ['type', 'id', 'error'] as const;
export const CRITERIA = ['type', 'id', 'payload', 'error', 'olderThan', 'where'] as const;

/** Criteria that were checked. */
export interface Criteria {
  /** Whether any is given. */
  readonly given: readonly (keyof TaskCriteria)[];
  readonly matches: (task: ListedTask) => boolean;
  readonly where: ((task: TaskInfo) => boolean) | undefined;
}

type AgeBroker = Pick<Broker, 'publications' | 'clock'>;

/** @throws InvalidOptionError */
export async function toCriteria(broker: AgeBroker, state: TaskState, options: TaskCriteria): Promise<Criteria> {
  const { type = '', id = '', payload = '', error = '', olderThan, where } = options;
  const given = CRITERIA.filter((name) => options[name] !== undefined);
  for (const name of TEXTS) if (options[name] !== undefined) requireNonBlank(options[name], name, InvalidOptionError);
  if (where !== undefined) requireFunction(where, 'where', InvalidOptionError);
  const hasPayload = options.payload === undefined ? () => true : payloadMatch(payload);
  const isOld = olderThan === undefined ? () => true : await ageMatch(broker, state, olderThan);
  return {
    given,
    matches: (task) => {
      const { message } = task;
      return (
        message.type.startsWith(type) &&
        message.id.startsWith(id) &&
        message.errorMsg.includes(error) &&
        isOld(task) &&
        hasPayload(message.payload)
      );
    },
    where,
  };
}

function payloadMatch(wanted: NonNullable<TaskCriteria['payload']>): (payload: Buffer) => boolean {
  if (typeof wanted === 'string') {
    requireNonBlank(wanted, 'payload', InvalidOptionError);
    return (payload) => payload.includes(wanted);
  }
  const fields = Object.entries(requirePlainObject(wanted, 'payload (a text, or values by field)', InvalidOptionError));
  if (fields.length === 0) throw new InvalidOptionError('payload has no field; give one, as in { "order.id": 17 }');
  for (const [path, value] of fields) requireFieldValue(path, value);
  return (payload) => {
    const read = readJson(payload);
    return fields.every(([path, value]) => fieldOf(read, path) === value);
  };
}

function requireFieldValue(path: string, value: unknown): void {
  if (value === null || ['string', 'number', 'boolean'].includes(typeof value)) return;
  throw new InvalidOptionError(
    `field "${path}" of payload must be a text, a number, true, false or null, not ${describe(value)}; name a field below it, as in "a.b"`,
  );
}

function readJson(payload: Buffer): unknown {
  try {
    return JSON.parse(payload.toString());
  } catch {
    return undefined;
  }
}

/** A name with dots that is a field itself comes first. */
export function fieldOf(value: unknown, path: string): unknown {
  if (typeof value !== 'object' || value === null) return undefined;
  if (Object.hasOwn(value, path)) return (value as Record<string, unknown>)[path];
  for (let dot = path.indexOf('.'); dot >= 0; dot = path.indexOf('.', dot + 1)) {
    const name = path.slice(0, dot);
    if (Object.hasOwn(value, name)) return fieldOf((value as Record<string, unknown>)[name], path.slice(dot + 1));
  }
  return undefined;
}

/** Milliseconds since the epoch at which a task came into its state, if that is known. */
type Since = (task: ListedTask) => number | undefined;

const seconds = (time: number | undefined): number | undefined => (time ? time * 1000 : undefined);

const SINCE: Partial<Record<TaskState, Since>> = {
  pending: ({ pendingSince }) => pendingSince,
  retry: ({ message }) => seconds(message.lastFailedAt),
  archived: ({ archivedAt }) => seconds(archivedAt),
  completed: ({ message }) => seconds(message.completedAt),
};

async function ageMatch({ publications, clock }: AgeBroker, state: TaskState, given: Duration) {
  const age = parseDuration(given, 'olderThan', InvalidOptionError);
  const since = state === 'active' ? await startsOf(publications) : SINCE[state];
  if (!since) {
    throw new InvalidOptionError(
      `olderThan is for tasks that are active, ${Object.keys(SINCE).join(', ')}; nobody stores since when a task is ${state}`,
    );
  }
  const latest = clock.now() - age;
  return (task: ListedTask): boolean => (since(task) ?? Infinity) <= latest;
}

/** Servers publish when they began a task, within seconds. */
async function startsOf(publications: Broker['publications']): Promise<Since> {
  const workers = (await publications.servers()).flatMap((server) => server.workers);
  const starts = new Map(workers.map(({ queue, taskId, startTime }) => [`${queue}\n${taskId}`, startTime]));
  return ({ message }) => starts.get(`${message.queue}\n${message.id}`);
}
