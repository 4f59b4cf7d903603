import type { EventsRole, StreamedEntry } from '../broker/events.js';
import { CONSOLE_ACTIONS, CONSOLE_OUTCOMES, type ConsoleAction } from '../events/console-action.js';

/** An action with its position in the trail: later entries have greater ids. */
export interface RecordedAction extends ConsoleAction {
  readonly id: string;
}

/** A page of the trail. */
export interface TrailPage {
  readonly actions: readonly RecordedAction[];
  /** The id to read on from; `undefined` at the end. */
  readonly before: string | undefined;
}

/** The changes made in the console, in one bounded stream that all processes share. */
export class AuditTrail {
  /** @param maxEntries about how many entries are kept */
  constructor(
    private readonly streams: Pick<EventsRole, 'appendEvents' | 'readEventsBack'>,
    private readonly maxEntries: number,
  ) {}

  /**
   * @param replaces the id of the entry written before, when the action began
   * @returns the id
   */
  async write(action: ConsoleAction, replaces?: string): Promise<string> {
    const data = Buffer.from(JSON.stringify({ ...action, at: action.at.getTime() }));
    return (await this.streams.appendEvents('audit', [data], { most: this.maxEntries, replaces }))!;
  }

  /** Returns the newest first. @param before an id; `undefined`: start at the newest */
  async read(before: string | undefined, limit: number): Promise<TrailPage> {
    const entries = await this.streams.readEventsBack('audit', before, limit);
    const actions = entries.map(decode).filter((action) => action !== undefined);
    return { actions, before: entries.length < limit ? undefined : entries.at(-1)!.id };
  }
}

const TEXT_FIELDS = [
  'process',
  'queue',
  'toQueue',
  'taskId',
  'newTaskId',
  'scope',
  'criteria',
  'state',
  'group',
  'schedule',
  'workflow',
  'batch',
  'row',
  'detail',
  'code',
] as const;
const NUMBER_FIELDS = ['count', 'failed', 'missing'] as const;

/** `undefined` for other data: other versions may write to the stream. */
function decode({ id, data }: StreamedEntry): RecordedAction | undefined {
  try {
    const { at, ...rest } = JSON.parse(data.toString()) as Omit<ConsoleAction, 'at'> & { at: number };
    const time = new Date(at);
    const known = CONSOLE_ACTIONS.includes(rest.action) && CONSOLE_OUTCOMES.includes(rest.outcome);
    if (!known || typeof rest.actor !== 'string' || typeof at !== 'number' || Number.isNaN(time.getTime())) return;
    const fits = (fields: readonly (keyof typeof rest)[], type: string): boolean =>
      fields.every((field) => rest[field] === undefined || typeof rest[field] === type);
    // The queues of an entry decide who may see it, so they must be readable.
    return fits(TEXT_FIELDS, 'string') && fits(NUMBER_FIELDS, 'number') ? { ...rest, id, at: time } : undefined;
  } catch {
    return undefined;
  }
}
