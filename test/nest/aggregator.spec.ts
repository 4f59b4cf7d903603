import { Injectable, Scope, UseGuards, UseInterceptors, Inject } from '@nestjs/common';
import { REQUEST } from '@nestjs/core';
import { Test } from '@nestjs/testing';
import { describe, expect, it } from 'vitest';
import {
  type AggregatedTask,
  AsynqClient,
  AsynqModule,
  bytesCodec,
  defineTask,
  getAsynqBrokerToken,
  getAsynqClientToken,
  type GroupedTask,
  type ServerOptions,
  TaskAggregator,
  TaskHandler,
  Payload,
} from 'nestjs-asynq';
import { AsynqTester, InMemoryBroker } from 'nestjs-asynq/testing';
import { compile } from './support.js';

interface Note {
  text: string;
}
const Digest = defineTask<{ group: string; texts: string[] }>('digest', { queue: 'elsewhere', maxRetry: 3 });

const QUICK: ServerOptions = { queues: ['default', 'mail'], groupGracePeriod: '10s' };

async function build(providers: unknown[], server: ServerOptions = QUICK) {
  const imports = [AsynqModule.forRoot({ connection: 'memory', server })];
  const app = await compile(Test.createTestingModule({ imports, providers: providers as never[] }));
  await app.init();
  return { app, client: app.get(AsynqClient), tester: AsynqTester.from(app) };
}

@Injectable()
class Digests {
  readonly seen: [string, readonly GroupedTask<Note>[]][] = [];
  readonly handled: unknown[] = [];

  @TaskAggregator('user:')
  async collect(group: string, tasks: readonly GroupedTask<Note>[]): Promise<AggregatedTask> {
    this.seen.push([group, tasks]);
    return {
      task: Digest,
      payload: { group, texts: tasks.map(({ payload }) => payload.text) },
      options: { maxRetry: 1 },
    };
  }

  @TaskHandler(Digest)
  digest(payload: unknown): void {
    this.handled.push(payload);
  }
}

const Remembered = defineTask<string>('remembered', { key: (id) => id, rememberFor: '1d' });
const Later = defineTask<string>('later', { key: (id) => id, after: Remembered });

describe('@TaskAggregator', () => {
  it('makes one task of a group, in the queue of the group, when the clock has moved', async () => {
    const { app, client, tester } = await build([Digests]);
    const digests = app.get(Digests);
    const options = { queue: 'mail', group: 'user:7', headers: { from: 'web' } };
    const first = await client.enqueue('note', { text: 'one' }, options);
    await tester.advance('5s');
    await client.enqueue('note', { text: 'two' }, { ...options, headers: undefined });
    expect(await tester.advance('9s')).toMatchObject({ total: 0, aggregations: [] });
    const summary = await tester.advance('1s');
    expect(summary).toMatchObject({ done: 1, total: 1 });
    expect(summary.aggregations).toMatchObject([
      { queue: 'mail', group: 'user:7', size: 2, task: { type: 'digest', queue: 'mail' } },
    ]);
    expect(digests.seen).toMatchObject([['user:7', [{ payload: { text: 'one' } }, { payload: { text: 'two' } }]]]);
    expect(digests.seen[0]![1][0]).toEqual({
      id: first.id,
      type: 'note',
      payload: { text: 'one' },
      headers: { from: 'web' },
    });
    expect(digests.handled).toEqual([{ group: 'user:7', texts: ['one', 'two'] }]);
    expect(tester.all()).toEqual([]);
  });

  it('applies the greatest delay and the greatest size by the clock', async () => {
    const { client, tester } = await build([Digests], {
      groupGracePeriod: '10s',
      groupMaxDelay: '25s',
      groupMaxSize: 4,
    });
    for (let n = 0; n < 3; n++) {
      await client.enqueue('note', { text: `${n}` }, { group: 'user:1' });
      expect((await tester.advance('8s')).aggregations).toEqual([]);
    }
    await client.enqueue('note', { text: 'last' }, { group: 'user:2' });
    expect((await tester.advance('1s')).aggregations).toMatchObject([{ group: 'user:1', size: 3 }]);
    await tester.advance('1m');
    for (let n = 0; n < 9; n++) await client.enqueue('note', { text: `${n}` }, { group: 'user:1' });
    expect((await tester.drain()).aggregations).toMatchObject([{ size: 4 }, { size: 4 }]);
    expect((await tester.advance('10s')).aggregations).toMatchObject([{ size: 1 }]);
  });

  it('receives a delayed task when its group is due after its time', async () => {
    const { app, client, tester } = await build([Digests]);
    await client.enqueue('note', { text: 'now' }, { group: 'user:1' });
    await client.enqueue('note', { text: 'soon' }, { group: 'user:1', processIn: '5s' });
    await client.enqueue('note', { text: 'at night' }, { group: 'user:1', processIn: '8h' });
    expect((await tester.advance('14s')).aggregations).toEqual([]);
    expect((await tester.advance('1s')).aggregations).toMatchObject([{ size: 2 }]);
    expect((await tester.advance('8h')).aggregations).toMatchObject([{ size: 1 }]);
    const texts = app.get(Digests).handled.map((payload) => (payload as { texts: string[] }).texts);
    expect(texts).toEqual([['now', 'soon'], ['at night']]);
  });

  it('reports a failure, and runs again two minutes later', async () => {
    let failures = 1;
    class Flaky {
      @TaskAggregator()
      collect(): AggregatedTask {
        if (failures-- > 0) throw new Error('not yet');
        return { type: 'whole', options: { retention: '1h' } };
      }
      @TaskHandler('whole')
      handle(): string {
        return 'fine';
      }
    }
    const { client, tester } = await build([Flaky]);
    await client.enqueue('note', undefined, { group: 'g' });
    const failed = await tester.advance('10s');
    expect(failed.aggregations).toMatchObject([{ group: 'g', error: { message: 'not yet' } }]);
    const { aggregations, completed } = await tester.advance('2m');
    expect(aggregations).toMatchObject([{ group: 'g', size: 1 }]);
    expect(completed).toBe(1);
  });

  it('makes a task that others wait for, or that waits, by its definition', async () => {
    class Linked {
      readonly ran: string[] = [];
      @TaskAggregator()
      collect(group: string): AggregatedTask {
        return group === 'later' ? { task: Later, payload: 'k' } : { task: Remembered, payload: 'k' };
      }
      @TaskHandler(Remembered)
      remembered(): void {
        this.ran.push('remembered');
      }
      @TaskHandler(Later)
      later(): void {
        this.ran.push('later');
      }
    }
    const { app, client, tester } = await build([Linked]);
    await client.enqueue('note', undefined, { group: 'later' });
    await tester.advance('10s');
    expect(tester.waiting(Later)).toHaveLength(1);
    await client.enqueue('note', undefined, { group: 'first' });
    await tester.advance('10s');
    expect(app.get(Linked).ran).toEqual(['remembered', 'later']);
  });

  it.each([
    ['nothing', undefined, /Odd\.collect returned undefined for group "g"; it must return the task to enqueue/],
    ['a text', 'whole', /Odd\.collect returned "whole" for group "g"/],
    [
      'an unknown key',
      { type: 'x', option: {} },
      /unknown key of an aggregated task: "option"; did you mean "options"/,
    ],
    ['a wrong option', { type: 'x', options: { retry: 3 } }, /unknown task option "retry"/],
    [
      'a task that waits',
      { type: 'x', options: { after: { queue: 'q', id: 'i' } } },
      /an aggregated task cannot have "after"; leave it out, or define the task with it/,
    ],
    ['a task whose key is blank', { task: Remembered, payload: ' ' }, /key of task "remembered" returned blank text/],
  ])('reports a failure when the method returns %s', async (_, answer, message) => {
    class Odd {
      @TaskAggregator()
      collect(): unknown {
        return answer;
      }
    }
    const { client, tester } = await build([Odd]);
    await client.enqueue('note', undefined, { group: 'g' });
    const [failure] = (await tester.advance('10s')).aggregations;
    expect((failure!.error as Error).message).toMatch(message);
    expect(tester.all('note')).toHaveLength(1);
  });

  it('archives a task whose payload cannot be decoded, and aggregates the others', async () => {
    const { app, client, tester } = await build([Digests]);
    await client.enqueue('note', Buffer.from('{'), { group: 'user:1' });
    await client.enqueue('note', { text: 'fine' }, { group: 'user:1' });
    await tester.advance('10s');
    expect(app.get(Digests).handled).toEqual([{ group: 'user:1', texts: ['fine'] }]);
    expect(tester.archived('note')).toHaveLength(1);
  });

  it('decodes with the codec it names', async () => {
    const seen: unknown[] = [];
    class Bytes {
      @TaskAggregator({ codec: bytesCodec })
      collect(_: string, tasks: readonly GroupedTask[]): AggregatedTask {
        seen.push(...tasks.map(({ payload }) => payload));
        return { type: 'whole' };
      }
    }
    const { client, tester } = await build([Bytes]);
    await client.enqueue('note', Buffer.from([0, 255]), { group: 'g' });
    await tester.advance('10s');
    expect(seen).toEqual([Buffer.from([0, 255])]);
  });

  it('can be on a request-scoped provider, with an instance per aggregation set', async () => {
    const requests: unknown[] = [];
    @Injectable({ scope: Scope.REQUEST })
    class Scoped {
      constructor(@Inject(REQUEST) request: unknown) {
        requests.push(request);
      }
      @TaskAggregator()
      collect(): AggregatedTask {
        return { type: 'whole' };
      }
    }
    const { client, tester } = await build([Scoped]);
    for (const group of ['a', 'b']) await client.enqueue('note', undefined, { group });
    await tester.advance('10s');
    expect(requests).toMatchObject([{ group: 'a', queue: 'default', tasks: [{ type: 'note' }] }, { group: 'b' }]);
  });

  it('leaves groups without an aggregator alone', async () => {
    const { client, tester } = await build([Digests]);
    await client.enqueue('note', { text: '' }, { group: 'order:1' });
    expect((await tester.advance('1h')).aggregations).toEqual([]);
    expect(tester.enqueued('note')).toHaveLength(1);
  });

  it('belongs to the connection it names', async () => {
    class Billing {
      @TaskAggregator({ connection: 'billing' })
      collect(): AggregatedTask {
        return { type: 'invoice' };
      }
    }
    const app = await Test.createTestingModule({
      imports: [
        AsynqModule.forRoot({ connection: 'memory' }),
        AsynqModule.forRoot({ connection: 'memory', name: 'billing' }),
      ],
      providers: [Billing],
    })
      .overrideProvider(getAsynqBrokerToken('billing'))
      .useClass(InMemoryBroker)
      .compile();
    const tester = AsynqTester.from(app, 'billing');
    await app.get<AsynqClient>(getAsynqClientToken('billing')).enqueue('item', undefined, { group: 'g' });
    await tester.advance('1m');
    expect(tester.enqueued('invoice')).toHaveLength(1);
    await app.close();
  });
});

describe('a wrong @TaskAggregator', () => {
  it('is refused where two have the same groups', async () => {
    class Twins {
      @TaskAggregator('g')
      one(): void {}
      @TaskAggregator('g')
      two(): void {}
    }
    await expect(build([Twins])).rejects.toThrow(
      'two aggregators for the groups "g…" of the connection "default": Twins.one and Twins.two; keep one of them',
    );
  });

  it('is refused where it names a connection that does not exist', async () => {
    class Lost {
      @TaskAggregator('g', { connection: 'biling' })
      collect(): void {}
    }
    await expect(build([Lost])).rejects.toThrow(/Lost\.collect is for the connection "biling"/);
  });

  it('is refused with guards, interceptors or decorated parameters, which would not apply', async () => {
    class Guarded {
      @TaskAggregator()
      @UseGuards({ canActivate: () => true })
      collect(): void {}
    }
    await expect(build([Guarded])).rejects.toThrow(/Guarded\.collect: guards do not apply to a @TaskAggregator method/);
    class Intercepted {
      @UseInterceptors({ intercept: (_, next) => next.handle() })
      @TaskAggregator()
      collect(): void {}
    }
    await expect(build([Intercepted])).rejects.toThrow(/interceptors do not apply/);
    class Decorated {
      @TaskAggregator()
      collect(@Payload() _: unknown): void {}
    }
    await expect(build([Decorated])).rejects.toThrow(/Decorated\.collect: .*remove the decorators of its parameters/);
  });

  it('is refused on anything but a method, with blank groups and with unknown options', () => {
    const apply = (decorator: MethodDecorator) => {
      class Target {
        collect(): void {}
      }
      const descriptor = Object.getOwnPropertyDescriptor(Target.prototype, 'collect')!;
      decorator(Target.prototype, 'collect', descriptor);
    };
    expect(() => apply(TaskAggregator(' '))).toThrow(/Target\.collect: @TaskAggregator takes a prefix of group names/);
    expect(() => apply(TaskAggregator({ conection: 'x' } as never))).toThrow(/did you mean "connection"/);
    expect(() => apply(TaskAggregator('g', { codec: {} as never }))).toThrow(/codec: encode must be a function/);
    expect(() => (TaskAggregator() as (target: object) => void)(class Whole {})).toThrow(
      /Whole: @TaskAggregator belongs on a method/,
    );
  });
});
