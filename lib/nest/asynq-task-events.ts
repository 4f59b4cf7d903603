import { Observable, ReplaySubject, takeUntil } from 'rxjs';
import { InvalidHandlerError } from '../errors.js';
import type { AsynqEvents } from '../events/events.js';
import {
  onTaskEvents,
  TASK_EVENT_NAMES,
  type TaskEvent,
  type TaskEventFilter,
  type TaskEventName,
} from '../events/task-events.js';
import { rejectUnknownKeys, requireObject } from '../validation.js';
import { checkEventFilter, checkEventNames } from './task-event.checks.js';

/**
 * What happens to tasks in this process, as observables. An event comes after it has been stored, while somebody is subscribed; what came
 * before is not repeated. All complete when the application shuts down, once its servers have ended. Injectable; for a named
 * connection by `getAsynqTaskEventsToken`.
 *
 * What a subscriber throws is reported by RxJS outside of the task, as an uncaught error; `@OnTaskEvent` methods are guarded.
 */
export class AsynqTaskEvents {
  /** Every event of every task. */
  readonly all$: Observable<TaskEvent>;
  private readonly ended = new ReplaySubject<void>(1);

  constructor(
    private readonly events: AsynqEvents,
    private readonly connection: string,
  ) {
    this.all$ = this.observe(TASK_EVENT_NAMES);
  }

  /**
   * @example
   * events.observe('failed', { queue: 'mail' }).subscribe(({ task, error }) => …);
   *
   * @param names one event, or several
   * @throws InvalidHandlerError for an event that there is not, or a blank type or queue
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

  /** For the module. */
  complete(): void {
    this.ended.next();
  }
}
