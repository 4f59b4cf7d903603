import { hostname } from 'node:os';
import type { Clock } from '../../clock.js';
import type { AuditTrail } from '../../event-streams/audit-trail.js';
import type { ConsoleAction, ConsoleActionName } from '../../events/console-action.js';
import type { AsynqEvents } from '../../events/events.js';
import { toErrorReply } from '../rest/api-error.js';
import type { ActionTarget, Effects } from './action-details.js';
import { actorOf, type DashboardActor } from './actor.js';

/**
 * Limits the refused attempts that one process records per minute, so that they cannot push other
 * entries out of the trail.
 */
const MAX_REFUSALS_PER_MINUTE = 60;
const MINUTE_MS = 60_000;

/** With these statuses a handler refuses a request before it changes anything. */
const REFUSALS = [400, 403];

export interface RecorderOptions {
  readonly trail: AuditTrail;
  readonly events: AsynqEvents;
  readonly clock: Clock;
  readonly actor: DashboardActor | undefined;
}

/**
 * Records every change made through the console. An entry is written before the action, and
 * replaced by one with the result. If the process ends in between, the entry stays as `started`. A
 * trail that cannot be written does not stop the action, because the console is needed most when
 * something is wrong. The log then has the entry, and the next entry says how many are missing.
 */
export class Recorder {
  private readonly process = `${hostname()}:${process.pid}`;
  /** Entries of this process that are missing in the trail, and that no entry has reported yet. */
  private missing = 0;
  private minute = 0;
  private refusals = 0;

  constructor(private readonly options: RecorderOptions) {}

  /** Starts a recording; writes nothing yet. */
  open(action: ConsoleActionName, target: ActionTarget, request: unknown): Recording {
    const { events, clock, actor } = this.options;
    const onFailure = (error: unknown): void =>
      events.emit('hookFailed', { hook: "The dashboard's option actor", error });
    const draft = { at: new Date(clock.now()), action, process: this.process, ...target };
    return new Recording(this, draft, () => actorOf(actor, request, onFailure));
  }

  /** Counts a refused attempt; returns whether it is recorded. */
  countRefusal(): boolean {
    const minute = Math.floor(this.options.clock.now() / MINUTE_MS);
    if (minute !== this.minute) [this.minute, this.refusals] = [minute, 0];
    this.refusals += 1;
    if (this.refusals > MAX_REFUSALS_PER_MINUTE) this.missing += 1;
    return this.refusals <= MAX_REFUSALS_PER_MINUTE;
  }

  /** The number of missing entries that the next entry reports. */
  takeMissing(): number | undefined {
    const missing = this.missing;
    this.missing = 0;
    return missing === 0 ? undefined : missing;
  }

  /** Never rejects. Returns the id, or `undefined` if the entry could not be written. */
  async write(action: ConsoleAction, replaces?: string): Promise<string | undefined> {
    try {
      return await this.options.trail.write(action, replaces);
    } catch (error) {
      this.options.events.emit('consoleTrailFailed', { action, error });
      return undefined;
    }
  }

  /** @param written whether the trail has an entry of it */
  emit(action: ConsoleAction, written: boolean): void {
    if (!written) this.missing += 1 + (action.missing ?? 0);
    this.options.events.emit('consoleAction', action);
  }
}

type Draft = Omit<ConsoleAction, 'actor' | 'outcome'>;

/** The recording of one action. */
export class Recording {
  private actor: Promise<string> | undefined;
  private begun = false;
  private id: string | undefined;

  constructor(
    private readonly recorder: Recorder,
    private draft: Draft,
    private readonly ask: () => Promise<string>,
  ) {}

  /** Whether the action may have changed something. */
  get hasBegun(): boolean {
    return this.begun;
  }

  /** Adds details. */
  add(target: ActionTarget): void {
    this.draft = { ...this.draft, ...target };
  }

  /** Writes the entry; called before the action. */
  async begin(): Promise<void> {
    this.begun = true;
    this.draft = { ...this.draft, missing: this.recorder.takeMissing() };
    this.id = await this.recorder.write(await this.as('started'));
  }

  async done(effects: Effects): Promise<void> {
    await this.end(await this.as('done', effects));
  }

  /** Records an error, thrown before or after the action began. */
  async failed(error: unknown): Promise<void> {
    const { code, status } = toErrorReply(error);
    const refused = !this.begun || REFUSALS.includes(status) || code === 'ELSEWHERE';
    if (!this.begun) {
      if (!this.recorder.countRefusal()) return;
      this.draft = { ...this.draft, missing: this.recorder.takeMissing() };
    }
    await this.end(await this.as(refused ? 'refused' : 'failed', { code }));
  }

  private async end(action: ConsoleAction): Promise<void> {
    const written = await this.recorder.write(action, this.id);
    this.recorder.emit(action, (written ?? this.id) !== undefined);
  }

  private async as(outcome: ConsoleAction['outcome'], more: Partial<ConsoleAction> = {}): Promise<ConsoleAction> {
    this.actor ??= this.ask();
    return { ...this.draft, ...more, outcome, actor: await this.actor };
  }
}
