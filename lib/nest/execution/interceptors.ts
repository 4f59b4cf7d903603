import { AsyncResource } from 'node:async_hooks';
import type { ExecutionContext, NestInterceptor } from '@nestjs/common';
import { from, isObservable, mergeAll, Observable, type ObservableInput, type Subscriber } from 'rxjs';
import { isThenable } from '../../async.js';
import type { GlobalEnhancers } from './global-enhancers.js';

/** The part of Nest's own consumer that makes the context of interceptors. */
export interface InterceptorContexts {
  createContext(
    args: unknown[],
    instance: object,
    callback: unknown,
  ): ExecutionContext & { setType(type: string): void };
}

type Next = () => Promise<unknown>;

/**
 * Calls interceptors around a handler, with what Nest's own consumer does: they may be asynchronous, subscribe to `next.handle()` as
 * often as they like, and what they call runs in the asynchronous context in which they called `handle`. It makes one observable
 * and one resource per interceptor where Nest makes a chain of promises and observables, which takes 5 µs of a task.
 */
export class Interceptors {
  constructor(
    private readonly nest: InterceptorContexts,
    private readonly globals: GlobalEnhancers,
  ) {}

  /** As Nest calls it. @param next calls pipes and handler */
  intercept(
    interceptors: readonly NestInterceptor[],
    args: unknown[],
    instance: object,
    callback: unknown,
    next: Next,
    type: string,
  ): unknown {
    if (interceptors.length === 0) return next();
    const context = this.nest.createContext(args, instance, callback);
    context.setType(type);
    return this.around(interceptors, 0, context, next);
  }

  private around(
    interceptors: readonly NestInterceptor[],
    place: number,
    context: ExecutionContext,
    next: Next,
  ): Observable<unknown> {
    const inner = place + 1;
    const handle =
      inner < interceptors.length
        ? () => inContext((subscriber) => this.around(interceptors, inner, context, next).subscribe(subscriber))
        : () => inContext((subscriber) => call(next, subscriber));
    const returned: unknown = this.callOne(interceptors[place]!, context, handle);
    if (isObservable(returned)) return returned;
    const stream = from(returned as ObservableInput<unknown>); // throws for what is no stream, as Nest does
    return isThenable(returned) ? stream.pipe(mergeAll() as never) : stream;
  }

  private callOne(one: NestInterceptor, context: ExecutionContext, handle: () => Observable<unknown>): unknown {
    try {
      return one.intercept(context, { handle });
    } catch (error) {
      this.globals.blame('interceptor', one, error);
      throw error;
    }
  }
}

/** Each subscription runs in the asynchronous context of this call. */
function inContext(subscribe: (subscriber: Subscriber<unknown>) => { unsubscribe(): void }): Observable<unknown> {
  const resource = new AsyncResource('AsynqInterceptor');
  return new Observable((subscriber) => resource.runInAsyncScope(subscribe, undefined, subscriber));
}

function call(next: Next, subscriber: Subscriber<unknown>): { unsubscribe(): void } {
  let inner: { unsubscribe(): void } | undefined;
  next().then(
    (result) => {
      if (subscriber.closed) return;
      if (isObservable(result)) return void (inner = result.subscribe(subscriber));
      subscriber.next(result);
      subscriber.complete();
    },
    (error: unknown) => subscriber.error(error),
  );
  return { unsubscribe: () => inner?.unsubscribe() };
}
