import {
  type ArgumentsHost,
  Catch,
  createParamDecorator,
  type ExceptionFilter,
  type ExecutionContext,
  Inject,
  Injectable,
  type PipeTransform,
  Scope,
  type Type,
  UseFilters,
  UseGuards,
  UseInterceptors,
  ValidationPipe,
} from '@nestjs/common';
import { REQUEST } from '@nestjs/core';
import { IsInt } from 'class-validator';
import {
  AsynqClient,
  defineTask,
  getTaskContext,
  getTaskContexts,
  getTaskPayload,
  InjectTasks,
  isBatchContext,
  Payload,
  PeriodicTask,
  SkipRetry,
  Steps,
  TaskAggregator,
  type TaskContext,
  TaskCtx,
  TaskHandler,
  type TasksOf,
  type TaskSteps,
} from 'nestjs-asynq';
import { concatMap, from, map, of, retry } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { rejection, testApp } from './support.js';

const Index = defineTask<{ id: number }, string>('index', { retention: '1h' });
const batch = { size: 100 };

class IndexDto {
  @IsInt()
  id!: number;
}

/** Enqueues a task per id, and runs them. */
async function run(provider: Type, ids: readonly unknown[], size = ids.length) {
  const { app, tasks } = await testApp({ providers: [provider] });
  await app.get(AsynqClient).enqueueMany(ids.map((id) => ({ task: Index, payload: { id } as { id: number } })));
  const { outcomes } = await tasks.drain();
  expect(outcomes).toHaveLength(size);
  return outcomes.map(({ outcome, result, error }) =>
    error ? [outcome, (error as Error).message] : [outcome, result],
  );
}

describe('a batch handler', () => {
  it('gets the payloads and contexts of many tasks in one call, and settles each with its result', async () => {
    const calls: unknown[] = [];
    @Injectable()
    class Tasks {
      @TaskHandler(Index, { batch })
      async index(payloads: { id: number }[], contexts: TaskContext[]) {
        calls.push([payloads.map(({ id }) => id), contexts.map(({ type }) => type)]);
        return payloads.map(({ id }) => `indexed ${id}`);
      }
    }
    const ends = await run(Tasks, [1, 2, 3]);
    expect(calls).toEqual([
      [
        [1, 2, 3],
        ['index', 'index', 'index'],
      ],
    ]);
    expect(ends).toEqual([1, 2, 3].map((id) => ['completed', `indexed ${id}`]));
  });

  it('gets full batches in tests, whatever the concurrency is', async () => {
    const sizes: number[] = [];
    @Injectable()
    class Tasks {
      @TaskHandler(Index, { batch: { size: 25 } })
      index(payloads: unknown[]) {
        sizes.push(payloads.length);
        return payloads.map(() => '');
      }
    }
    await run(
      Tasks,
      Array.from({ length: 60 }, (_, id) => id),
    );
    expect(sizes).toEqual([25, 25, 10]);
  });

  it('gets what its parameters ask for, as arrays', async () => {
    let got: unknown[] = [];
    const Size = createParamDecorator((_: unknown, host: ExecutionContext) => getTaskContexts(host).length);
    @Injectable()
    class Tasks {
      @TaskHandler(Index, { batch })
      index(@TaskCtx() contexts: TaskContext[], @Payload('id') ids: number[], @Size() size: number) {
        got = [contexts.length, ids, size];
        return ids.map(String);
      }
    }
    expect(await run(Tasks, [1, 2])).toEqual([
      ['completed', '1'],
      ['completed', '2'],
    ]);
    expect(got).toEqual([2, [1, 2], 2]);
  });

  const BAD = new Error('bad');
  it.each<[string, unknown, unknown[][]]>([
    [
      'an Error',
      [BAD, 'ok'],
      [
        ['retry', 'bad'],
        ['completed', 'ok'],
      ],
    ],
    [
      'a rejected promise',
      () => [Promise.reject(BAD), Promise.resolve('ok')],
      [
        ['retry', 'bad'],
        ['completed', 'ok'],
      ],
    ],
    [
      'what Promise.allSettled gives',
      () => Promise.allSettled([Promise.reject(BAD), 'ok']),
      [
        ['retry', 'bad'],
        ['completed', 'ok'],
      ],
    ],
    [
      'an Error that skips retries',
      [new SkipRetry('bad'), 'ok'],
      [
        ['archived', 'bad'],
        ['completed', 'ok'],
      ],
    ],
    [
      'nothing',
      undefined,
      [
        ['completed', undefined],
        ['completed', undefined],
      ],
    ],
    [
      'an Observable',
      () => from([['early'], ['a', 'b']]),
      [
        ['completed', 'a'],
        ['completed', 'b'],
      ],
    ],
  ])('settles each alone: %s', async (_, returned, expected) => {
    @Injectable()
    class Tasks {
      @TaskHandler('index', { batch })
      index(_payloads: unknown[]): unknown {
        return typeof returned === 'function' ? returned() : returned;
      }
    }
    expect(await run(Tasks, [1, 2])).toEqual(expected);
  });

  it.each<[unknown, string]>([
    [['a'], 'an array of 1'],
    ['text', '"text"'],
    [{ ok: true }, 'an object'],
  ])('fails all when it returns %j for two tasks', async (returned, shown) => {
    @Injectable()
    class Tasks {
      @TaskHandler('index', { batch })
      index(_payloads: unknown[]): unknown {
        return returned;
      }
    }
    const message =
      `Tasks.index returned ${shown} for 2 tasks; it must return an array with one result per task, in their order ` +
      '(an Error for a task that has failed), or nothing';
    expect(await run(Tasks, [1, 2])).toEqual([
      ['retry', message],
      ['retry', message],
    ]);
  });

  it('fails all when it throws', async () => {
    @Injectable()
    class Tasks {
      @TaskHandler(Index, { batch })
      index(_payloads: unknown[]): string[] {
        throw new Error('down');
      }
    }
    expect(await run(Tasks, [1, 2])).toEqual([
      ['retry', 'down'],
      ['retry', 'down'],
    ]);
  });
});

describe('the payloads of a batch', () => {
  @Injectable()
  class Checked {
    @TaskHandler(Index, { batch: { size: 100, items: IndexDto } })
    index(@Payload(new ValidationPipe({ transform: true })) payloads: IndexDto[], @TaskCtx() contexts: TaskContext[]) {
      expect(payloads.every((payload) => payload instanceof IndexDto)).toBe(true);
      expect(contexts).toHaveLength(payloads.length);
      return payloads.map(({ id }) => `indexed ${id}`);
    }
  }

  it('are validated one by one: an invalid one is archived, and the others run', async () => {
    const ends = await run(Checked, [1, 'x', 3]);
    expect(ends.sort()).toEqual([
      ['archived', 'invalid payload of task "index": id must be an integer number'],
      ['completed', 'indexed 1'],
      ['completed', 'indexed 3'],
    ]);
  });

  it('that are all invalid call no handler', async () => {
    const ends = await run(Checked, ['x', 'y']);
    expect(ends.map(([outcome]) => outcome)).toEqual(['archived', 'archived']);
  });

  it('go through the pipes again when an interceptor calls the handler again', async () => {
    let calls = 0;
    @Injectable()
    @UseInterceptors({ intercept: (_, next) => next.handle().pipe(retry(1)) })
    class Tasks {
      @TaskHandler(Index, { batch: { size: 100, items: IndexDto } })
      index(@Payload(ValidationPipe) payloads: IndexDto[], @Payload('id') ids: number[]) {
        if (++calls === 1) throw new Error('once');
        return payloads.map((_, index) => `${ids[index]} of ${payloads.length}`);
      }
    }
    expect((await run(Tasks, [1, 'x', 3])).sort()).toEqual([
      ['archived', 'invalid payload of task "index": id must be an integer number'],
      ['completed', '1 of 2'],
      ['completed', '3 of 2'],
    ]);
  });

  it('that cannot be decoded fail alone', async () => {
    const { app, tasks } = await testApp({ providers: [Checked] });
    const client = app.get(AsynqClient);
    const bytes = { encode: () => Buffer.from('{'), decode: () => undefined };
    await client.enqueue(defineTask('index', { codec: bytes }), {});
    await client.enqueue(Index, { id: 2 });
    const { outcomes } = await tasks.drain();
    expect(outcomes.map(({ outcome }) => outcome).sort()).toEqual(['archived', 'completed']);
  });
});

describe('the pipeline of a batch', () => {
  it('runs once, with one execution context', async () => {
    const trace: unknown[] = [];
    const look = (who: string, host: ExecutionContext): void => {
      const ids = getTaskPayload<{ id: number }[]>(host).map(({ id }) => id);
      trace.push([who, isBatchContext(host), ids, getTaskContexts(host).length, host.getHandler().name]);
    };
    @Injectable()
    @UseGuards({ canActivate: (context: ExecutionContext) => (look('guard', context), true) })
    class Tasks {
      @TaskHandler(Index, { batch })
      @UseInterceptors({
        intercept: (context: ExecutionContext, next) => {
          look('interceptor', context);
          return next.handle().pipe(
            concatMap(async (all: string[]) => all),
            map((all: string[]) => all.map((one) => `${one}!`)),
          );
        },
      })
      index(payloads: { id: number }[]) {
        return payloads.map(({ id }) => `${id}`);
      }
    }
    expect(await run(Tasks, [1, 2])).toEqual([
      ['completed', '1!'],
      ['completed', '2!'],
    ]);
    expect(trace).toEqual(['guard', 'interceptor'].map((who) => [who, true, [1, 2], 2, 'index']));
  });

  it('fails all when a guard refuses the batch, or an interceptor returns too few results', async () => {
    @Injectable()
    class Refused {
      @TaskHandler(Index, { batch })
      @UseGuards({ canActivate: () => false })
      index(_payloads: unknown[]): string[] {
        throw new Error('called');
      }
    }
    expect(await run(Refused, [1, 2])).toEqual([
      ['retry', 'Forbidden resource: the guard without a class refused task "index"'],
      ['retry', 'Forbidden resource: the guard without a class refused task "index"'],
    ]);
    @Injectable()
    class Short {
      @TaskHandler(Index, { batch })
      @UseInterceptors({ intercept: () => of(['cached']) })
      index(payloads: unknown[]) {
        return payloads.map(() => '');
      }
    }
    expect((await run(Short, [1, 2])).map(([, message]) => message)).toEqual([
      expect.stringContaining('Short.index returned an array of 1 for 2 tasks'),
      expect.stringContaining('Short.index returned an array of 1 for 2 tasks'),
    ]);
  });

  it('gives each error to a filter once, with the tasks that it fails', async () => {
    const seen: unknown[] = [];
    @Catch()
    class Decide implements ExceptionFilter {
      catch(error: Error, host: ArgumentsHost) {
        seen.push([error.message, getTaskContexts(host).length]);
        throw new SkipRetry('decided', { cause: error });
      }
    }
    @Injectable()
    @UseFilters(Decide)
    class Tasks {
      @TaskHandler(Index, { batch })
      index(payloads: { id: number }[]) {
        if (payloads.length === 3) throw new Error('all');
        return payloads.map(({ id }) => (id === 1 ? new Error('one') : 'ok'));
      }
    }
    expect((await run(Tasks, [1, 2])).sort()).toEqual([
      ['archived', 'decided'],
      ['completed', 'ok'],
    ]);
    expect(await run(Tasks, [1, 2, 3])).toEqual([1, 2, 3].map(() => ['archived', 'decided']));
    expect(seen).toEqual([
      ['one', 1],
      ['all', 3],
    ]);
  });

  it('says what to use when code for one task asks for its context', async () => {
    @Injectable()
    class Tasks {
      @TaskHandler(Index, { batch })
      @UseGuards({ canActivate: (context: ExecutionContext) => getTaskContext(context).id !== '' })
      index(payloads: unknown[]) {
        return payloads.map(() => '');
      }
    }
    const message =
      'getTaskContext is for one task, and this is a batch of 2; use getTaskContexts, which returns an array for both';
    expect(await run(Tasks, [1, 2])).toEqual([
      ['retry', message],
      ['retry', message],
    ]);
  });

  it('makes one instance of a request-scoped class per batch', async () => {
    let made = 0;
    @Injectable({ scope: Scope.REQUEST })
    class Tasks {
      constructor(@Inject(REQUEST) private readonly contexts: TaskContext[]) {
        made += 1;
      }
      @TaskHandler(Index, { batch })
      index(payloads: unknown[]) {
        return payloads.map(() => `${made} for ${this.contexts.length}`);
      }
    }
    expect(await run(Tasks, [1, 2])).toEqual([
      ['completed', '1 for 2'],
      ['completed', '1 for 2'],
    ]);
  });

  it('gives pipes of a value each payload, not the array', async () => {
    const upper: PipeTransform = {
      transform: (value: unknown) => (typeof value === 'string' ? value.toUpperCase() : value),
    };
    @Injectable()
    class Tasks {
      @TaskHandler('index', { batch })
      index(@Payload('id', upper) ids: string[]) {
        return ids;
      }
    }
    expect(await run(Tasks, ['a', 'b'])).toEqual([
      ['completed', 'A'],
      ['completed', 'B'],
    ]);
  });
});

describe('a batch handler that is declared wrongly', () => {
  const declare = (options: object) => () => {
    class Tasks {
      index() {}
    }
    const descriptor = Object.getOwnPropertyDescriptor(Tasks.prototype, 'index')!;
    TaskHandler('index', options)(Tasks.prototype, 'index', descriptor);
  };

  it.each<[object, string]>([
    [{ batch: true }, "batch of Tasks.index, as in { size: 100, wait: '200ms' }, must be an object, not true"],
    [{ batch: {} }, 'size of batch of Tasks.index must be a whole number from 1 to 10000'],
    [{ batch: { size: 0 } }, 'size of batch of Tasks.index must be a whole number from 1 to 10000'],
    [{ batch: { size: 9, wiat: 1 } }, 'unknown option of batch of Tasks.index "wiat"; did you mean "wait"?'],
    [{ batch: { size: 9, wait: '31s' } }, 'wait of batch of Tasks.index must be from 0 to 30 seconds, not "31s"'],
    [{ batch: { size: 9, wait: -1 } }, 'wait of batch of Tasks.index must be from 0 to 30 seconds, not -1'],
    [
      { batch: { size: 9, items: 'Dto' } },
      'items of batch of Tasks.index (the class of one payload) must be a function',
    ],
    [{ batch: { size: 9 }, concurrency: 8 }, 'Tasks.index: concurrency 8 counts tasks, and is less than the size'],
    [{ batch: { size: 9 }, validate: 'both' }, 'Tasks.index: validate "both" is for handlers that are called'],
  ])('is refused: %j', (options, message) => {
    expect(declare(options)).toThrow(message);
  });

  it('is refused beside an aggregator, and with bytes', async () => {
    @Injectable()
    class Both {
      @TaskAggregator('g')
      @TaskHandler('index', { batch })
      index(..._: unknown[]): unknown {
        return undefined;
      }
    }
    const { app } = await testApp({ providers: [Both] });
    expect(await rejection(app.init())).toMatchObject({
      message: expect.stringContaining('Both.index has @TaskAggregator and a batch handler on one method'),
    });
    @Injectable()
    class Bytes {
      @TaskHandler('index', { batch })
      index(@Payload() _bytes: Buffer): unknown {
        return undefined;
      }
    }
    const second = await testApp({ providers: [Bytes] });
    expect(await rejection(second.app.init())).toMatchObject({
      message: expect.stringContaining('Bytes.index is a batch handler, whose payloads are an array'),
    });
    @Injectable()
    class InSteps {
      @TaskHandler('index', { batch })
      index(@Payload() _payloads: unknown[], @Steps() _steps: TaskSteps): unknown {
        return undefined;
      }
    }
    const third = await testApp({ providers: [InSteps] });
    expect(await rejection(third.app.init())).toMatchObject({
      message: expect.stringContaining('InSteps.index is a batch handler, and steps are those of one task'),
    });
  });

  it('is not called like a method', async () => {
    @Injectable()
    class Tasks {
      @TaskHandler(Index, { batch })
      index(payloads: unknown[]) {
        return payloads.map(() => '');
      }
    }
    @Injectable()
    class Caller {
      constructor(@InjectTasks(Tasks) readonly tasks: TasksOf<Tasks>) {}
    }
    const { app } = await testApp({ providers: [Tasks, Caller] });
    expect(() => app.get(Caller).tasks.index([{ id: 1 }])).toThrow(
      'Tasks.index is a batch handler, which takes the payloads of many tasks, so a call of it cannot be typed; ' +
        'enqueue by the definition or the type: asynq.enqueue(task, payload)',
    );
  });

  it('is no periodic task', () => {
    class Tasks {
      index() {}
    }
    const descriptor = Object.getOwnPropertyDescriptor(Tasks.prototype, 'index')!;
    const options = { batch } as object;
    expect(() => PeriodicTask('@daily', options)(Tasks.prototype, 'index', descriptor)).toThrow(
      'unknown @PeriodicTask option of Tasks.index: "batch"',
    );
  });
});
