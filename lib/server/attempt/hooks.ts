import { isThenable, watchRejection } from '../../async.js';
import type { AsynqEvents } from '../../events/events.js';
import type { IsFailure, RetryDelay } from '../../task/context.js';
import { defaultRetryDelay } from '../../task/retry-delay.js';
import type { ActiveTask } from './active-task.js';

/**
 * Called for every failed attempt, before its outcome is stored (asynq's ErrorHandler).
 * Synchronous.
 */
export type OnError = (error: unknown, task: ActiveTask) => void;

export interface HookOptions {
  readonly onError?: OnError | undefined;
  readonly isFailure?: IsFailure | undefined;
  readonly retryDelay?: RetryDelay | undefined;
}

/**
 * The user's functions about failures; those of a handler before those of the server. The default
 * of one that throws applies.
 */
export class Hooks {
  constructor(
    private readonly options: HookOptions,
    private readonly events: AsynqEvents,
  ) {}

  onError(task: ActiveTask, error: unknown): void {
    const { onError } = this.options;
    if (onError) this.guard('onError', task, () => this.watch('onError', task, onError(error, task)), undefined);
  }

  isFailure(task: ActiveTask, error: unknown): boolean {
    const isFailure = task.handler?.isFailure ?? this.options.isFailure;
    if (!isFailure) return true;
    const checked = (): boolean => Boolean(this.atOnce('isFailure', task, isFailure(error), 'true or false'));
    return this.guard('isFailure', task, checked, true);
  }

  /** Milliseconds until the next attempt. */
  retryDelay(task: ActiveTask, error: unknown): number {
    const retryDelay = task.handler?.retryDelay ?? this.options.retryDelay;
    if (!retryDelay) return defaultRetryDelay(task.retried);
    const checked = (): number => {
      const delay = this.atOnce('retryDelay', task, retryDelay(task.retried, error, task), 'milliseconds');
      if (typeof delay === 'number' && Number.isFinite(delay)) return Math.max(0, delay);
      throw new TypeError(`retryDelay returned ${String(delay)}; it must return a number of milliseconds`);
    };
    return this.guard('retryDelay', task, checked, undefined) ?? defaultRetryDelay(task.retried);
  }

  /** An async function passes for a hook: its rejection is reported like what a hook throws. */
  private watch<T>(hook: string, task: ActiveTask, returned: T): T {
    watchRejection(returned, (error) => this.report(hook, task, error));
    return returned;
  }

  private atOnce<T>(hook: string, task: ActiveTask, returned: T, what: string): T {
    if (!isThenable(this.watch(hook, task, returned))) return returned;
    throw new TypeError(`${hook} returned a promise; it must return ${what} at once`);
  }

  private guard<T>(hook: string, task: ActiveTask, call: () => T, fallback: T): T {
    try {
      return call();
    } catch (error) {
      this.report(hook, task, error);
      return fallback;
    }
  }

  private report(hook: string, { id, type, queue }: ActiveTask, error: unknown): void {
    this.events.emit('hookFailed', { hook, error, task: { id, type, queue } });
  }
}
