import { mapConcurrent } from '../async.js';
import type { SchedulePause } from '../broker/scheduling.js';
import { payloadToJson } from '../task/bytes-json.js';
import type { TaskOptions } from '../task/options.js';
import type { SchedulerEnqueueEvent, SchedulerEntry } from '../wire/message.js';
import { type EnqueueOption, parseOption } from '../wire/options.js';

/** A read is small; so many on their way keep a connection busy. */
const PAUSES_AT_ONCE = 200;

/** A periodic task of our schedulers or of asynq's (asynq's SchedulerEntry). */
export class PeriodicEntry {
  declare readonly id: string;
  /** The schedule as registered: `0 9 * * 1-5`, `@every 1h` … */
  declare readonly spec: string;
  declare readonly taskType: string;
  declare readonly taskPayload: Buffer;
  /** The options in asynq's notation: `Queue("low")`, `MaxRetry(5)` … */
  declare readonly options: readonly string[];
  /**
   * The same for `AsynqClient.enqueue`; durations in milliseconds. Like asynq's readers it omits `TaskID`, `Group`, and texts that
   * contain a `)`.
   */
  declare readonly taskOptions: Readonly<TaskOptions>;
  /** `undefined`: never. */
  declare readonly nextEnqueueAt: Date | undefined;
  /** `undefined`: not yet. */
  declare readonly prevEnqueueAt: Date | undefined;
  /** How many processes have the entry; together they fire it once. Each entry of an asynq scheduler counts by itself. */
  declare readonly replicas: number;
  /** Whether it can be paused: `false` for entries of Go's schedulers, which know no pause. */
  declare readonly canPause: boolean;
  /** Since when it is paused; `undefined`: it is not. `nextEnqueueAt` is then the next planned time that will be skipped. */
  declare readonly pausedAt: Date | undefined;

  constructor(entry: SchedulerEntry, replicas: number, pause: SchedulePause) {
    const { id, spec, taskType, taskPayload, enqueueOptions: options } = entry;
    Object.assign(this, { id, spec, taskType, taskPayload, options, taskOptions: readOptions(options) });
    const [nextEnqueueAt, prevEnqueueAt] = [toDate(entry.nextEnqueueTime), toDate(entry.prevEnqueueTime)];
    Object.assign(this, { nextEnqueueAt, prevEnqueueAt, replicas });
    const pausedAt = pause.pausedAt === undefined ? undefined : new Date(pause.pausedAt * 1000);
    Object.assign(this, { canPause: pause.known, pausedAt });
  }

  /** Like TaskInfo: the payload as JSON, text or base64, according to `taskPayloadEncoding`. */
  toJSON(): object {
    return payloadToJson(this);
  }
}

/** One task a scheduler has enqueued. */
export interface EnqueueEvent {
  readonly taskId: string;
  readonly enqueuedAt: Date;
}

/** The queue of the tasks of an entry. */
export const queueOfEntry = (options: readonly string[]): string => readOptions(options).queue ?? 'default';

/**
 * One per entry, in the order of publication. Processes publish an entry some seconds apart: the times of the latest firing
 * count.
 */
export async function viewEntries(
  published: readonly SchedulerEntry[],
  readPause: (queue: string, id: string) => Promise<SchedulePause>,
): Promise<PeriodicEntry[]> {
  const byKind = new Map<string, { entry: SchedulerEntry; replicas: number }>();
  for (const entry of published) {
    const { id, spec, taskType, taskPayload, enqueueOptions } = entry;
    const kind = JSON.stringify([id, spec, taskType, taskPayload.toString('base64'), enqueueOptions]);
    const known = byKind.get(kind) ?? { entry, replicas: 0 };
    byKind.set(kind, { entry: later(known.entry, entry), replicas: known.replicas + 1 });
  }
  return mapConcurrent([...byKind.values()], PAUSES_AT_ONCE, async ({ entry, replicas }) => {
    const pause = await readPause(queueOfEntry(entry.enqueueOptions), entry.id);
    return new PeriodicEntry(entry, replicas, pause);
  });
}

function later(a: SchedulerEntry, b: SchedulerEntry): SchedulerEntry {
  return (b.prevEnqueueTime ?? -Infinity) > (a.prevEnqueueTime ?? -Infinity) ? b : a;
}

const toDate = (milliseconds: number | undefined): Date | undefined =>
  milliseconds === undefined ? undefined : new Date(milliseconds);

/** Of equal options the last one counts, as in asynq; of headers the last one of a name. */
function readOptions(texts: readonly string[]): TaskOptions {
  let options: TaskOptions = {};
  for (const text of texts) {
    const option = parseOption(text);
    if (option) options = { ...options, ...toTaskOption(option, options) };
  }
  return options;
}

function toTaskOption(option: EnqueueOption, { headers }: TaskOptions): TaskOptions {
  switch (option.name) {
    case 'Queue':
      return { queue: option.value };
    case 'MaxRetry':
      return { maxRetry: option.value };
    case 'Timeout':
      return { timeout: option.value };
    case 'Deadline':
      return { deadline: option.value };
    case 'Unique':
      return { unique: option.value };
    case 'ProcessAt':
      return { processAt: option.value, processIn: undefined };
    case 'ProcessIn':
      return { processIn: option.value, processAt: undefined };
    case 'Retention':
      return { retention: option.value };
    case 'Header':
      return { headers: { ...headers, [option.value[0]]: option.value[1] } };
    default:
      return {};
  }
}

export const viewEvent = ({ taskId, enqueueTime }: SchedulerEnqueueEvent): EnqueueEvent => ({
  taskId,
  enqueuedAt: new Date(enqueueTime),
});
