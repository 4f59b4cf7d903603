import { watchRejection } from '../async.js';
import type { AsynqEventMap, AsynqEventName, TaskRef } from './event-map.js';

export type {
  AsynqEventMap,
  AsynqEventName,
  EndedWait,
  FinishedStep,
  GroupRef,
  PeriodicRef,
  StepOutcomeKind,
  StepWork,
  TaskOutcome,
  TaskOutcomeKind,
  TaskRecovery,
  TaskRef,
} from './event-map.js';

type Listener<E extends AsynqEventName> = (event: AsynqEventMap[E]) => void;

interface Subscription<E extends AsynqEventName> {
  readonly listener: Listener<E>;
  ended: boolean;
}

interface Subscriptions<E extends AsynqEventName> {
  readonly all: Set<Subscription<E>>;
  /**
   * The same as a list that never changes, made when needed: a listener added during an event gets
   * the next one.
   */
  snapshot: readonly Subscription<E>[] | undefined;
  /** How many of them need every event. */
  needed: number;
}

/** The task of an event, without its payload; the entry of a periodic task's event. */
export function taskOf(event: object): { readonly task?: TaskRef } {
  const { entry, task = entry } = event as { readonly task?: Partial<TaskRef>; readonly entry?: Partial<TaskRef> };
  if (task?.id === undefined || task.type === undefined || task.queue === undefined) return {};
  const { id, type, queue } = task;
  return { task: { id, type, queue } };
}

/** A small typed emitter: what a listener throws never reaches the code that emits. */
export class AsynqEvents {
  private readonly listeners = new Map<AsynqEventName, Subscriptions<never>>();
  private waitRequests = 0;

  /**
   * @param needs `troubles`: the listener does nothing when all went well, so that the hot path need not emit that for it
   * @returns a function that ends the subscription
   */
  on<E extends AsynqEventName>(event: E, listener: Listener<E>, needs: 'all' | 'troubles' = 'all'): () => void {
    const subscription: Subscription<E> = { listener, ended: false };
    let those = this.listeners.get(event) as Subscriptions<E> | undefined;
    if (!those) this.listeners.set(event, (those = { all: new Set(), snapshot: undefined, needed: 0 }));
    const subscriptions = those;
    subscriptions.all.add(subscription);
    subscriptions.snapshot = undefined;
    const count = needs === 'all' ? 1 : 0;
    subscriptions.needed += count;
    return () => {
      if (!subscription.ended) subscriptions.needed -= count;
      subscription.ended = true;
      subscriptions.snapshot = undefined;
      subscriptions.all.delete(subscription);
      if (subscriptions.all.size === 0 && this.listeners.get(event) === subscriptions) this.listeners.delete(event);
    };
  }

  /**
   * Has the server measure how long each task it claims from now on was pending (`waited`). That
   * costs reading one more field per task.
   *
   * @returns a function that ends it
   */
  measureWaits(): () => void {
    let requests = 1;
    this.waitRequests += requests;
    return () => {
      this.waitRequests -= requests;
      requests = 0;
    };
  }

  get measuresWaits(): boolean {
    return this.waitRequests > 0;
  }

  /**
   * Whether there is a listener: the hot path builds no event without one.
   *
   * @param isTrouble `false`: the event says that all went well
   */
  wants(event: AsynqEventName, isTrouble = true): boolean {
    const those = this.listeners.get(event);
    return those !== undefined && (isTrouble || those.needed > 0);
  }

  emit<E extends AsynqEventName>(event: E, payload: AsynqEventMap[E]): void {
    const those = this.listeners.get(event) as Subscriptions<E> | undefined;
    if (!those) return;
    const report = (error: unknown): void => {
      if (event !== 'listenerFailed') this.emit('listenerFailed', { event, error, ...taskOf(payload) });
    };
    for (const subscription of (those.snapshot ??= [...those.all])) {
      if (subscription.ended) continue;
      try {
        watchRejection(subscription.listener(payload), report);
      } catch (error) {
        report(error);
      }
    }
  }
}
