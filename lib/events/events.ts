import type { TaskInfo } from '../task/info.js';
import type { ConsoleAction } from './console-action.js';

/** What a finished attempt came to. `done`: deleted after success; `completed`: retained; `lost`: no longer ours, nothing written. */
export type TaskOutcomeKind =
  'done' | 'completed' | 'retry' | 'archived' | 'revoked' | 'postponed' | 'requeued' | 'lost';

/** What events tell of a task. */
export interface TaskRef {
  readonly id: string;
  readonly type: string;
  readonly queue: string;
}

export interface GroupRef {
  readonly queue: string;
  readonly group: string;
}

/** One attempt, after its outcome was committed. */
export interface TaskOutcome {
  readonly outcome: TaskOutcomeKind;
  readonly task: TaskRef;
  /** Failures before this attempt. */
  readonly retried: number;
  readonly maxRetry: number;
  /** What the handler returned. */
  readonly result?: unknown;
  /** What the handler threw, or why it was stopped. */
  readonly error?: unknown;
  /** When the task will run again, for `retry`. */
  readonly retryAt?: Date;
  /** Milliseconds from the start of the handler to its end. */
  readonly duration: number;
  /** Milliseconds it was pending before the attempt; known while somebody asks for it ({@link AsynqEvents.measureWaits}). */
  readonly waited?: number;
}

/** The attempt of a server that went away, ended by another one. */
export interface TaskRecovery {
  readonly outcome: 'retry' | 'archived';
  readonly task: TaskRef;
  /** Failures before this attempt. */
  readonly retried: number;
  readonly maxRetry: number;
  readonly error: Error;
  readonly retryAt?: Date;
}

/** One planned time of a periodic task. */
export interface PeriodicRef {
  /** Of the entry. */
  readonly id: string;
  readonly spec: string;
  readonly type: string;
  readonly queue: string;
  readonly planned: Date;
}

/** The events of a server, by name. Listeners run synchronously; what they throw is reported as `listenerFailed`. */
export interface AsynqEventMap {
  /** This process has stored a new task: a client, a scheduler or an aggregator of it. */
  taskEnqueued: { readonly task: TaskInfo };
  /** A call that was to store so many tasks failed: Redis did not answer, or refused it. Who enqueued them is told, too. */
  enqueueFailed: { readonly queue: string; readonly tasks: number; readonly error: unknown };
  /** A handler is about to be called. `waited`: see TaskOutcome. */
  taskStarted: {
    readonly task: TaskRef;
    readonly retried: number;
    readonly maxRetry: number;
    readonly waited?: number;
  };
  /** The outcome of an attempt is stored (or is `lost`). */
  taskFinished: TaskOutcome;
  /** A handler has not settled some time after its attempt was ended; it keeps its slot. */
  handlerStuck: { readonly task: TaskRef; readonly reason: unknown; readonly seconds: number };
  /** A stored message, or the payload of a grouped task, could not be decoded; the task was archived as it is. `type`: where it is known. */
  taskDamaged: { readonly task: Pick<TaskRef, 'id' | 'queue'> & Partial<TaskRef>; readonly error: Error };
  /** A handler's result could not be encoded; the task succeeded without it. */
  resultDropped: { readonly task: TaskRef; readonly error: unknown };
  /** A user's hook (onError, retryDelay, isFailure, healthCheck) threw; its default applies. */
  hookFailed: { readonly hook: string; readonly error: unknown; readonly task?: TaskRef };
  /** `listener`: the method, when it has a name. */
  listenerFailed: {
    readonly event: string;
    readonly error: unknown;
    readonly listener?: string;
    /** Of the event, where it is about one. */
    readonly task?: TaskRef;
  };
  /** Events could not be added to the stream of the fleet, and are lost; told once until it works again. */
  eventStreamFailed: { readonly error: unknown; readonly lost: number };
  /** The stream of the fleet cannot be read; told once until it can be. */
  eventStreamUnread: { readonly error: unknown };
  /** Something was changed through the web console, or its change was refused; told by the process that was asked. */
  consoleAction: ConsoleAction;
  /** An action of the web console could not be recorded in its trail; it is done nevertheless. */
  consoleTrailFailed: { readonly action: ConsoleAction; readonly error: unknown };
  /** The application ends, and listeners that were waited for have not. */
  listenersLeft: { readonly listeners: number };
  /** A task of a crashed or stalled server was taken over. */
  taskRecovered: TaskRecovery;
  /** The same, summed up: tasks of one queue that were taken over in one step. */
  tasksRecovered: { readonly queue: string; readonly retried: number; readonly archived: number };
  /** Ids without a message, or active ids without a lease, were repaired. */
  queueRepaired: { readonly queue: string; readonly ghosts: number; readonly leases: number };
  /** The tasks of a group have become one task. */
  groupAggregated: GroupRef & { readonly size: number; readonly task: TaskRef };
  /** A group's tasks could not be made into one; they go back to the group at `retryAt`, to be tried again. `types`: of these tasks. */
  aggregationFailed: GroupRef & {
    readonly size: number;
    readonly error: unknown;
    readonly retryAt: Date;
    readonly types?: readonly string[];
  };
  /** Grouped tasks whose aggregation did not end in time went back to their groups. */
  groupsReclaimed: { readonly queue: string; readonly tasks: number };
  /** Groups nobody would have aggregated were listed again, names of empty groups removed. */
  groupsRepaired: { readonly queue: string; readonly listed: number; readonly removed: number };
  /** A group is due and no server aggregates it; told once per queue. */
  groupNotAggregated: GroupRef;
  /** Redis does not answer for a queue; `unsettled` finished tasks wait for it. */
  queueUnreachable: { readonly queue: string; readonly error: unknown; readonly unsettled: number };
  queueReachable: { readonly queue: string };
  /** A background loop failed; it goes on with back-off. */
  loopFailed: { readonly loop: string; readonly error: unknown };
  /** Wake-up notices are not to be had; the server polls. */
  wakeUnavailable: { readonly error: unknown };
  /** The application declares handlers (aggregators among them) for a connection that only produces (`server: false`): they are not run here. */
  handlersIdle: { readonly handlers: number };
  /** The module has options of a server, and the application declares no handler for it: none is started. */
  handlersMissing: { readonly connection: string };
  /** This process has enqueued the task of a planned time. */
  periodicTaskEnqueued: { readonly entry: PeriodicRef; readonly taskId: string };
  /** A planned time was passed over: `missed` (this one and perhaps later ones) or while the last task was `unfinished`. */
  periodicTaskSkipped: { readonly entry: PeriodicRef; readonly reason: 'missed' | 'unfinished' };
  /** The task of a planned time was refused: a duplicate, or its id is taken. */
  periodicTaskFailed: { readonly entry: PeriodicRef; readonly error: Error };
  /** A source of periodic tasks failed, or a spec of it cannot be read; the entries stay as they were. */
  periodicSourceFailed: { readonly source: string; readonly error: unknown };
  serverStarted: { readonly concurrency: number; readonly queues: Readonly<Record<string, number>> };
  /** Redis may remove tasks when its memory is full; told once, at the start. */
  storeEvicts: { readonly address: string; readonly policy: string };
  /** Redis is older than what this library needs; told once, at the start. */
  storeOutdated: { readonly address: string; readonly version: string; readonly needed: string };
  /**
   * The clock here is ahead of that of Redis by so many milliseconds, behind it when negative; told once, at the start. Servers that
   * share a queue must agree on the time: leases, schedules and retries are moments.
   */
  storeClockDiffers: { readonly address: string; readonly ahead: number };
  /** Fetching has ended for good; running tasks go on. */
  serverStopped: { readonly active: number };
  /** After `drain`: nothing runs, or has to be settled, any more. */
  serverDrained: Readonly<Record<string, never>>;
  /** The shutdown timeout passed with tasks still running, which were told to stop, or with sets of grouped tasks being aggregated. */
  shutdownTimedOut: { readonly active: number; readonly aggregating: number };
  serverClosed: { readonly requeued: number };
}

export type AsynqEventName = keyof AsynqEventMap;
type Listener<E extends AsynqEventName> = (event: AsynqEventMap[E]) => void;

interface Subscription<E extends AsynqEventName> {
  readonly listener: Listener<E>;
  ended: boolean;
}

interface Subscriptions<E extends AsynqEventName> {
  readonly all: Set<Subscription<E>>;
  /** The same as a list that is never changed: who subscribes while an event is told hears the next one. Made when it is needed. */
  told: readonly Subscription<E>[] | undefined;
}

/** Whether it is a promise, or what `await` takes for one. */
export const isThenable = (value: unknown): value is PromiseLike<unknown> =>
  typeof value === 'object' && value !== null && typeof (value as { then?: unknown }).then === 'function';

/** An async function passes for a hook or listener that returns nothing; its rejection would end the process. */
export function watchRejection(returned: unknown, onRejected: (error: unknown) => void): void {
  if (isThenable(returned)) Promise.resolve(returned).catch(onRejected);
}

/** The task an event is about, without its payload; of a periodic one the entry. */
export function taskOf(event: object): { readonly task?: TaskRef } {
  const { entry, task = entry } = event as { readonly task?: Partial<TaskRef>; readonly entry?: Partial<TaskRef> };
  if (task?.id === undefined || task.type === undefined || task.queue === undefined) return {};
  const { id, type, queue } = task;
  return { task: { id, type, queue } };
}

/** A small typed emitter: a listener that throws, or rejects, never reaches the code that emits. */
export class AsynqEvents {
  private readonly listeners = new Map<AsynqEventName, Subscriptions<never>>();
  private waitsAskedFor = 0;

  /** @returns a function that ends the subscription */
  on<E extends AsynqEventName>(event: E, listener: Listener<E>): () => void {
    const subscription: Subscription<E> = { listener, ended: false };
    let those = this.listeners.get(event) as Subscriptions<E> | undefined;
    if (!those) this.listeners.set(event, (those = { all: new Set(), told: undefined }));
    const subscriptions = those;
    subscriptions.all.add(subscription);
    subscriptions.told = undefined;
    return () => {
      subscription.ended = true;
      subscriptions.told = undefined;
      subscriptions.all.delete(subscription);
      if (subscriptions.all.size === 0 && this.listeners.get(event) === subscriptions) this.listeners.delete(event);
    };
  }

  /**
   * Has the server measure how long each task was pending (`waited`), which costs it the reading of one more field per task. For tasks
   * that it takes from now on.
   *
   * @returns a function that ends it
   */
  measureWaits(): () => void {
    let asked = 1;
    this.waitsAskedFor += asked;
    return () => {
      this.waitsAskedFor -= asked;
      asked = 0;
    };
  }

  get measuresWaits(): boolean {
    return this.waitsAskedFor > 0;
  }

  /** Whether anybody listens: lets the hot path skip building an event nobody wants. */
  wants(event: AsynqEventName): boolean {
    return this.listeners.has(event);
  }

  emit<E extends AsynqEventName>(event: E, payload: AsynqEventMap[E]): void {
    const those = this.listeners.get(event) as Subscriptions<E> | undefined;
    if (!those) return;
    const report = (error: unknown): void => {
      if (event !== 'listenerFailed') this.emit('listenerFailed', { event, error, ...taskOf(payload) });
    };
    for (const subscription of (those.told ??= [...those.all])) {
      if (subscription.ended) continue;
      try {
        watchRejection(subscription.listener(payload), report);
      } catch (error) {
        report(error);
      }
    }
  }
}
