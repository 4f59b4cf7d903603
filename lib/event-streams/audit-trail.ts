import type { EventsRole, StreamedEntry } from '../broker/events.js';
import { CONSOLE_ACTIONS, CONSOLE_OUTCOMES, type ConsoleAction } from '../events/console-action.js';

/** An action with its place in the trail: later entries have greater ids. */
export interface RecordedAction extends ConsoleAction {
  readonly id: string;
}

/** One look at the trail. */
export interface TrailPage {
  readonly actions: readonly RecordedAction[];
  /** Where to read on; `undefined` at the end. */
  readonly before: string | undefined;
}

/** What was changed through the console, in one bounded stream that all processes share. */
export class AuditTrail {
  /** @param most about how many entries are kept */
  constructor(
    private readonly streams: Pick<EventsRole, 'appendEvents' | 'readEventsBack'>,
    private readonly most: number,
  ) {}

  /**
   * @param replaces the id of the entry written before, when the action began
   * @returns the id
   */
  async write(action: ConsoleAction, replaces?: string): Promise<string> {
    const data = Buffer.from(JSON.stringify({ ...action, at: action.at.getTime() }));
    return (await this.streams.appendEvents('audit', [data], { most: this.most, replaces }))!;
  }

  /** Newest first. @param before an id; `undefined`: from the newest on */
  async read(before: string | undefined, limit: number): Promise<TrailPage> {
    const entries = await this.streams.readEventsBack('audit', before, limit);
    const actions = entries.map(decode).filter((action) => action !== undefined);
    return { actions, before: entries.length < limit ? undefined : entries.at(-1)!.id };
  }
}

const TEXTS = [
  ...(['process', 'queue', 'toQueue', 'taskId', 'newTaskId', 'scope', 'state', 'group', 'schedule'] as const),
  ...(['detail', 'code'] as const),
];
const NUMBERS = ['count', 'failed', 'missing'] as const;

/** `undefined` for what is none: whoever may write to Redis may write to the stream, and other versions do. */
function decode({ id, data }: StreamedEntry): RecordedAction | undefined {
  try {
    const { at, ...rest } = JSON.parse(data.toString()) as Omit<ConsoleAction, 'at'> & { at: number };
    const time = new Date(at);
    const known = CONSOLE_ACTIONS.includes(rest.action) && CONSOLE_OUTCOMES.includes(rest.outcome);
    if (!known || typeof rest.actor !== 'string' || typeof at !== 'number' || Number.isNaN(time.getTime())) return;
    const fits = (fields: readonly (keyof typeof rest)[], type: string): boolean =>
      fields.every((field) => rest[field] === undefined || typeof rest[field] === type);
    // Who may see an entry follows from its queues: of one without a readable name nobody could say.
    return fits(TEXTS, 'string') && fits(NUMBERS, 'number') ? { ...rest, id, at: time } : undefined;
  } catch {
    return undefined;
  }
}
