import { Observable, ReplaySubject, takeUntil } from 'rxjs';
import type { Broker } from '../../broker/broker.js';
import { type Duration, parseDuration } from '../../duration.js';
import { InvalidHandlerError, InvalidOptionError } from '../../errors.js';
import { type ConsoleAction, type ConsoleActionFilter, consoleActionMatcher } from '../../events/console-action.js';
import type { AsynqEvents } from '../../events/events.js';
import {
  matcher,
  onTaskEvents,
  TASK_EVENT_NAMES,
  type TaskEvent,
  type TaskEventFilter,
  type TaskEventName,
  wantedOf,
} from '../../events/task-events.js';
import { EventReader } from '../../event-streams/event-reader.js';
import type { FleetOccurrence, FleetTaskEvent } from '../../event-streams/fleet-event.js';
import { describe, rejectUnknownKeys, requireObject } from '../../validation.js';
import { checkConsoleActionFilter } from '../decorators/console-action.checks.js';
import { checkEventFilter, checkEventNames } from '../decorators/task-event.checks.js';

export interface FleetOptions extends TaskEventFilter {
  /** The `id` of an event: the stream starts after it, as far as it is still kept. `'0'`: from the oldest. Default: from now on. */
  from?: string;
  /** Time between two reads of the stream, at least 50ms. Default 1 s. */
  interval?: Duration;
}

/**
 * The task events of this process as observables. An event is emitted after the change is stored, to current subscribers only. All
 * observables complete when the application shuts down, after its servers have ended. Injectable; for a named connection by
 * `getAsynqTaskEventsToken`.
 *
 * RxJS reports what a subscriber throws outside of the task, as an uncaught error; errors of `@OnTaskEvent` methods are caught.
 */
export class AsynqTaskEvents {
  /** Every event of every task. */
  readonly all$: Observable<TaskEvent>;
  private readonly ended = new ReplaySubject<void>(1);

  constructor(
    private readonly events: AsynqEvents,
    private readonly connection: string,
    private readonly broker: Broker,
  ) {
    this.all$ = this.observe(TASK_EVENT_NAMES);
  }

  /**
   * @example
   * events.observe('failed', { queue: 'mail' }).subscribe(({ task, error }) => …);
   *
   * @param names one event, or several
   * @throws InvalidHandlerError for an unknown event, or a blank type or queue
   */
  observe<E extends TaskEventName>(names: E | readonly E[], filter: TaskEventFilter = {}): Observable<TaskEvent<E>> {
    const wanted = checkEventNames(names, 'AsynqTaskEvents.observe');
    requireObject(filter, 'AsynqTaskEvents.observe: the filter', InvalidHandlerError);
    rejectUnknownKeys(filter, ['type', 'queue'], 'key of a filter of task events:', InvalidHandlerError);
    checkEventFilter(filter, 'AsynqTaskEvents.observe');
    return new Observable<TaskEvent<E>>((subscriber) =>
      onTaskEvents(this.events, this.connection, wanted, filter, (event) => subscriber.next(event)),
    ).pipe(takeUntil(this.ended));
  }

  /**
   * The events with these names of every process whose module has the option `eventStream`, as far as the option includes them. This
   * process does not need the option. Each subscriber reads Redis once per `interval`; while Redis is unavailable, the stream waits.
   *
   * @example
   * events.fleet('failed', { type: 'mail:' }).subscribe(({ process, task, error }) => …);
   *
   * @throws InvalidHandlerError, InvalidOptionError
   */
  fleet<E extends TaskEventName>(names: E | readonly E[], options: FleetOptions = {}): Observable<FleetTaskEvent<E>> {
    const {
      from,
      interval = 1_000,
      ...filter
    } = requireObject(options, 'AsynqTaskEvents.fleet: the options', InvalidOptionError) as FleetOptions;
    const wanted = checkEventNames(names, 'AsynqTaskEvents.fleet');
    rejectUnknownKeys(options, ['type', 'queue', 'from', 'interval'], 'option of fleet:', InvalidOptionError);
    checkEventFilter(filter, 'AsynqTaskEvents.fleet');
    const settings = { from: checkPlace(from), interval: checkInterval(interval) };
    const fits = matcher(filter);
    return new Observable<FleetTaskEvent<E>>((subscriber) => {
      const onEvent = ({ names: all, ...occurrence }: FleetOccurrence): void => {
        if (!fits(occurrence.task)) return;
        for (const event of wantedOf(all, wanted)) subscriber.next({ ...occurrence, event });
      };
      const onFailure = (error: unknown): void => this.events.emit('eventStreamUnread', { error });
      const reader = new EventReader({ broker: this.broker, ...settings, onEvent, onFailure });
      return () => reader.end();
    }).pipe(takeUntil(this.ended));
  }

  /**
   * The actions of the web console in this process when they end: done, refused or failed. The audit trail of all processes is in
   * the console: see the dashboard's option `actor`.
   *
   * @example
   * events.consoleActions({ action: 'delete_queue' }).subscribe(({ actor, queue }) => …);
   *
   * @throws InvalidHandlerError for an unknown action or outcome, or a blank queue
   */
  consoleActions(filter: ConsoleActionFilter = {}): Observable<ConsoleAction> {
    checkConsoleActionFilter(filter, 'AsynqTaskEvents.consoleActions');
    const fits = consoleActionMatcher(filter);
    return new Observable<ConsoleAction>((subscriber) =>
      this.events.on('consoleAction', (action) => fits(action) && subscriber.next(action)),
    ).pipe(takeUntil(this.ended));
  }

  /** Called by the module. */
  complete(): void {
    this.ended.next();
  }
}

function checkPlace(from: unknown): string | undefined {
  if (from === undefined) return undefined;
  if (typeof from === 'string' && /^\d{1,15}(-\d{1,15})?$/.test(from)) return from.includes('-') ? from : `${from}-0`;
  throw new InvalidOptionError(`AsynqTaskEvents.fleet: from must be the id of an event, not ${describe(from)}`);
}

function checkInterval(interval: Duration): number {
  const milliseconds = parseDuration(interval, 'AsynqTaskEvents.fleet: interval');
  if (milliseconds >= 50) return milliseconds;
  throw new InvalidOptionError(`AsynqTaskEvents.fleet: interval must be 50ms at least, not ${describe(interval)}`);
}
