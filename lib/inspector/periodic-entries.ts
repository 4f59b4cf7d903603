import { payloadToJson } from '../task/bytes-json.js';
import type { TaskOptions } from '../task/options.js';
import type { SchedulerEnqueueEvent, SchedulerEntry } from '../wire/message.js';
import { type EnqueueOption, parseOption } from '../wire/options.js';

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

  constructor(entry: SchedulerEntry, replicas: number) {
    const { id, spec, taskType, taskPayload, enqueueOptions: options } = entry;
    Object.assign(this, { id, spec, taskType, taskPayload, options, taskOptions: readOptions(options) });
    const [nextEnqueueAt, prevEnqueueAt] = [toDate(entry.nextEnqueueTime), toDate(entry.prevEnqueueTime)];
    Object.assign(this, { nextEnqueueAt, prevEnqueueAt, replicas });
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

/**
 * One per entry, in the order of publication. Processes publish an entry some seconds apart: the times of the latest firing
 * count.
 */
export function viewEntries(published: readonly SchedulerEntry[]): PeriodicEntry[] {
  const byKind = new Map<string, { entry: SchedulerEntry; replicas: number }>();
  for (const entry of published) {
    const { id, spec, taskType, taskPayload, enqueueOptions } = entry;
    const kind = JSON.stringify([id, spec, taskType, taskPayload.toString('base64'), enqueueOptions]);
    const known = byKind.get(kind) ?? { entry, replicas: 0 };
    byKind.set(kind, { entry: later(known.entry, entry), replicas: known.replicas + 1 });
  }
  return [...byKind.values()].map(({ entry, replicas }) => new PeriodicEntry(entry, replicas));
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
