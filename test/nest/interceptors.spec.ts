import { AsyncLocalStorage } from 'node:async_hooks';
import type { CallHandler, NestInterceptor } from '@nestjs/common';
import { ApplicationConfig, ExternalContextCreator } from '@nestjs/core';
import {
  catchError,
  concat,
  EMPTY,
  from,
  lastValueFrom,
  map,
  NEVER,
  Observable,
  of,
  race,
  retry,
  take,
  throwError,
  timer,
} from 'rxjs';
import { describe, expect, test } from 'vitest';
import { GlobalEnhancers } from '../../lib/nest/execution/global-enhancers.js';
import { type InterceptorContexts, Interceptors } from '../../lib/nest/execution/interceptors.js';
import { testApp } from './support.js';

type Intercept = (next: CallHandler, trace: unknown[]) => unknown;
type Call = (attempt: number) => unknown;

const store = new AsyncLocalStorage<string>();

/** Nest's own consumer, which ours must not differ from. */
async function consumers() {
  const { app } = await testApp({});
  const creator = app.get(ExternalContextCreator) as unknown as {
    interceptorsConsumer: InterceptorContexts & Interceptors;
  };
  const nest = creator.interceptorsConsumer;
  return { nest, ours: new Interceptors(nest, new GlobalEnhancers(new ApplicationConfig())) };
}

/** What a call leaves: its value or error, and what was traced. */
async function outcome(consumer: Interceptors, intercepts: readonly Intercept[], call: Call) {
  const trace: unknown[] = [];
  let attempt = 0;
  const interceptors = intercepts.map((intercept): NestInterceptor => ({
    intercept: (context, next) => {
      trace.push([context.getType(), context.getArgs(), context.getClass().name, store.getStore()]);
      return intercept(next, trace) as Observable<unknown>;
    },
  }));
  const next = async (): Promise<unknown> => {
    trace.push(['handler', store.getStore()]);
    return call(++attempt);
  };
  class Owner {}
  const run = async (): Promise<unknown> => {
    const result = await consumer.intercept(interceptors, ['payload', 'context'], new Owner(), () => 0, next, 'asynq');
    return result instanceof Observable ? lastValueFrom(result) : result;
  };
  const ended = await store.run('outside', run).then(
    (value) => ({ value }),
    (error: unknown) => ({ error: `${(error as Error).name}: ${(error as Error).message}` }),
  );
  return { ...ended, trace };
}

const pass: Intercept = (next) => next.handle();
const fail = (message: string) => throwError(() => new Error(message));

const CASES: readonly [name: string, intercepts: readonly Intercept[], call: Call][] = [
  ['none', [], () => 'value'],
  ['one that passes on', [pass], () => 'value'],
  ['three that pass on', [pass, pass, pass], () => 'value'],
  ['a handler without a value', [pass], () => undefined],
  ['a handler that throws', [pass, pass], () => Promise.reject(new Error('handler'))],
  [
    'a handler that returns an Observable',
    [pass, (next) => next.handle().pipe(map((n) => [n]))],
    () => from([1, 2, 3]),
  ],
  ['a handler whose Observable fails', [pass], () => concat(of(1), fail('later'))],
  ['a handler whose Observable is empty', [pass], () => EMPTY],
  ['one that changes the value', [(next) => next.handle().pipe(map((value) => [value]))], () => 'value'],
  ['one that does not call the handler', [() => of('cached'), pass], () => 'value'],
  [
    'one that catches',
    [pass, (next) => next.handle().pipe(catchError((error: Error) => of(error.message)))],
    () => Promise.reject(new Error('caught')),
  ],
  [
    'one that tries again',
    [(next) => next.handle().pipe(retry(2)), pass],
    (attempt) => (attempt < 3 ? Promise.reject(new Error(`${attempt}`)) : attempt),
  ],
  ['one that subscribes twice', [(next) => concat(next.handle(), next.handle())], (attempt) => attempt],
  ['an asynchronous one', [async (next) => next.handle().pipe(map((value) => [value])), pass], () => 'value'],
  ['an asynchronous one within another', [pass, async (next) => Promise.resolve(next.handle())], () => 'value'],
  [
    'one that throws',
    [
      pass,
      () => {
        throw new Error('thrown');
      },
    ],
    () => 'value',
  ],
  ['an asynchronous one that throws', [async () => Promise.reject(new Error('rejected'))], () => 'value'],
  ['one whose Observable fails', [() => fail('failed')], () => 'value'],
  ['one that returns nothing', [() => undefined], () => 'value'],
  ['one within another that returns nothing', [pass, () => undefined], () => 'value'],
  ['one that returns an array', [() => ['first', 'last']], () => 'value'],
  ['one that returns a promise of a text', [async () => 'text'], () => 'value'],
  ['one that gives up', [(next) => race(next.handle(), timer(0).pipe(map(() => 'given up')))], () => NEVER],
  ['one that takes the first value', [(next) => next.handle().pipe(take(1))], () => from([1, 2, 3])],
  ['a context around handle', [(next) => store.run('inside', () => next.handle()), pass], () => store.getStore()],
  [
    'a context around the subscription',
    [(next) => new Observable((subscriber) => store.run('inside', () => next.handle().subscribe(subscriber))), pass],
    () => store.getStore(),
  ],
  [
    'a context that an asynchronous one enters',
    [
      async (next) => {
        await Promise.resolve();
        return store.run('inside', () => next.handle());
      },
      pass,
    ],
    async () => (await Promise.resolve(), store.getStore()),
  ],
];

describe('interceptors are called as Nest calls them', () => {
  test.each(CASES)('%s', async (_, intercepts, call) => {
    const { nest, ours } = await consumers();
    const expected = await outcome(nest, intercepts, call);
    expect(await outcome(ours, intercepts, call)).toEqual(expected);
  });

  test('an Observable that nobody reads any more is left', async () => {
    const { nest, ours } = await consumers();
    for (const consumer of [nest, ours]) {
      let left = 0;
      const endless = new Observable((subscriber) => (subscriber.next('first'), () => (left += 1)));
      const first: Intercept = (next) => next.handle().pipe(take(1));
      expect(await outcome(consumer, [first, pass], () => endless)).toMatchObject({ value: 'first' });
      expect(left).toBe(1);
    }
  });
});
