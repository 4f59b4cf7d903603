import { Controller, Get, Injectable, Param } from '@nestjs/common';
import {
  AsynqClient,
  AsynqModule,
  defineTask,
  type EnqueueOptions,
  InjectTasks,
  Payload,
  SkipRetry,
  TaskCtx,
  TaskHandler,
  type TaskContext,
  type TasksOf,
} from 'nestjs-asynq';
import { AsynqTester } from 'nestjs-asynq/testing';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { Test } from '@nestjs/testing';
import { quiet, rejection, testApp } from './support.js';

interface Order {
  readonly orderId: string;
}

const RenderInvoice = defineTask<Order, { url: string; at: Date }>('invoice:render');
const Sum = defineTask<number[], number>('sum', { maxRetry: 0 });

@Injectable()
class Invoices {
  constructor(private readonly asynq: AsynqClient) {}

  @TaskHandler(RenderInvoice)
  async render(@Payload() { orderId }: Order) {
    return { url: `/invoices/${orderId}.pdf`, at: new Date(0) };
  }

  /** Calls itself for the rest. */
  @TaskHandler(Sum)
  async sum(@Payload() [first, ...rest]: number[]): Promise<number> {
    if (first === undefined) return 0;
    if (first < 0) throw new SkipRetry('below zero');
    return first + (await this.asynq.call(Sum, rest));
  }

  @TaskHandler('echo')
  echo(@Payload() value: unknown, @TaskCtx() task: TaskContext) {
    return { value, retention: task.headers['x'] };
  }
}

@Controller('invoices')
class InvoiceController {
  constructor(
    private readonly asynq: AsynqClient,
    @InjectTasks(Invoices) readonly tasks: TasksOf<Invoices>,
  ) {}

  @Get(':id')
  async show(@Param('id') orderId: string) {
    const { url } = await this.asynq.call(RenderInvoice, { orderId }, { timeout: '10s' });
    return url;
  }
}

const parts = { providers: [Invoices], controllers: [InvoiceController] };

async function memoryApp() {
  const imports = [AsynqModule.forRoot({ connection: 'memory' })];
  const app = await Test.createTestingModule({ imports, ...parts })
    .setLogger(quiet)
    .compile();
  onTestFinished(() => app.close());
  await app.init();
  return { app, asynq: app.get(AsynqClient) };
}

describe('a call', () => {
  it('resolves to the result of the handler, as JSON leaves it', async () => {
    const { app, asynq } = await memoryApp();
    const result = await asynq.call(RenderInvoice, { orderId: '7' });
    expect(result).toEqual({ url: '/invoices/7.pdf', at: '1970-01-01T00:00:00.000Z' });
    expect(await app.get(InvoiceController).show('8')).toBe('/invoices/8.pdf');
    expect(await asynq.call('echo', 5, { headers: { x: '1' } })).toEqual({ value: 5, retention: '1' });
  });

  it('gets results alike whether they are read or not: each its own', async () => {
    const { asynq } = await memoryApp();
    const info = await asynq.enqueue('echo', { a: [1] }, { processIn: '1s', retention: '1h' });
    const [one, other] = await Promise.all([asynq.result(info), asynq.result(info)]);
    expect(one).toEqual({ value: { a: [1] } });
    expect(other).toEqual(one);
    expect(other).not.toBe(one);
    expect(await asynq.result(info)).toEqual(one); // this one is read
  });

  it('may be made by a handler, of its own type, too', async () => {
    const { asynq } = await memoryApp();
    expect(await asynq.call(Sum, [1, 2, 3])).toBe(6);
  });

  it('fails as the task does', async () => {
    const { asynq } = await memoryApp();
    expect(await rejection(asynq.call(Sum, [-1]))).toMatchObject({ code: 'ASYNQ_TASK_FAILED', reason: 'below zero' });
  });

  it('is a method of the handlers of a class', async () => {
    const { app } = await memoryApp();
    const { tasks } = app.get(InvoiceController);
    const { url } = await tasks.call({ timeout: '5s' }).render({ orderId: '9' });
    expect(url).toBe('/invoices/9.pdf');
    expect(
      await tasks
        .with({ headers: { x: '2' } })
        .call()
        .echo('a'),
    ).toEqual({ value: 'a', retention: '2' });
    expect((await tasks.render({ orderId: '10' })).type).toBe('invoice:render');
    await expect(tasks.call({ timout: '5s' } as never).sum([])).rejects.toThrow('did you mean "timeout"?');
  });

  it('ends when the application does', async () => {
    const { app, asynq } = await memoryApp();
    const info = await asynq.enqueue('nobody:handles', {}, { processIn: '1h' });
    const wait = rejection(asynq.result(info));
    await app.close();
    expect(await wait).toMatchObject({ code: 'ASYNQ_CLOSED' });
  });

  it('refuses what it cannot wait for', async () => {
    const { tasks, app } = await testApp(parts);
    const asynq = app.get(AsynqClient);
    const refused: [Promise<unknown>, string][] = [
      [asynq.call('echo', 1, { group: 'g' } as never), 'becomes a part of another task'],
      [asynq.call('echo', 1, { timeout: 0 }), 'must be longer than 0'],
      [asynq.call('echo', 1, { timeout: Infinity }), 'is not a duration'],
      [asynq.call('echo', 1, { signal: 1 } as never), 'must be an AbortSignal'],
      [asynq.call('echo', 1, 'soon' as never), 'options of call'],
      [asynq.result({ queue: 'q' } as never), 'id of the task whose result is waited for must be a text'],
      [asynq.result({ queue: 'q', id: 'x' }, { retention: '1m' } as never), 'option of result'],
      [tasks.transaction(() => asynq.call('echo', 1)), 'call in a transaction'],
    ];
    for (const [call, text] of refused) expect((await rejection(call)).message).toContain(text);
    expect(tasks.all()).toEqual([]);
    expect(await rejection(asynq.result({ queue: 'default', id: 'x' }))).toMatchObject({
      code: 'ASYNQ_TASK_NOT_FOUND',
    });
  });
});

describe('a call in a test', () => {
  it('resolves when the test runs the task', async () => {
    const { app, tasks } = await testApp(parts);
    const result = app.get(AsynqClient).call(RenderInvoice, { orderId: '7' });
    await tasks.drain();
    expect(await result).toMatchObject({ url: '/invoices/7.pdf' });
  });

  it('times out when the clock says so', async () => {
    const { app, tasks } = await testApp(parts);
    const result = rejection(app.get(AsynqClient).call(RenderInvoice, { orderId: '7' }, { processIn: '1h' }));
    await tasks.advance('30s');
    expect(await result).toMatchObject({ code: 'ASYNQ_RESULT_TIMEOUT', timeout: 30_000 });
    const info = await app.get(AsynqClient).enqueue(Sum, [], { processIn: '1h' });
    const later = rejection(app.get(AsynqClient).result(info, { timeout: '2h' }));
    await tasks.advance('1h');
    expect(await later).toMatchObject({ code: 'ASYNQ_RESULT_NOT_KEPT' });
  });

  it('is answered while a controller waits', async () => {
    const { app, tasks } = await testApp(parts);
    const controller = app.get(InvoiceController);
    const replies = await tasks.drainWhile(async () => [await controller.show('1'), await controller.show('2')]);
    expect(replies).toEqual(['/invoices/1.pdf', '/invoices/2.pdf']);
    await expect(tasks.drainWhile(() => app.get(AsynqClient).call(Sum, [-1]))).rejects.toThrow('below zero');
  });

  it('is refused when it waits for a task that cannot run', async () => {
    const { app, tasks } = await testApp(parts);
    const wait = (options: EnqueueOptions<unknown>) =>
      tasks.drainWhile(() => app.get(AsynqClient).call('nobody', {}, options), { patience: 50 });
    expect((await rejection(wait({ queue: 'unserved' }))).message).toContain(
      'drainWhile: the work has not ended, and no task can run: 1 of "nobody": the server does not serve the queue "unserved"',
    );
    tasks.clear();
    expect((await rejection(wait({ processIn: '1h' }))).message).toMatch(
      /"nobody" \(scheduled\) is due at 2\S+Z: advance the clock\. Give \{ patience \}/,
    );
  });

  it('may wait for something else than tasks', async () => {
    const { tasks } = await testApp(parts);
    const looks = vi.spyOn(tasks, 'enqueued'); // for tasks that cannot run yet, when the patience is over
    const work = () => vi.waitUntil(() => looks.mock.calls.length > 5, { interval: 1 });
    expect(await tasks.drainWhile(work, { patience: 5 })).toBe(true);
  });

  it('is answered when a handler makes it', async () => {
    const { app, tasks } = await testApp(parts);
    expect(await tasks.drainWhile(() => app.get(AsynqClient).call(Sum, [1, 2]))).toBe(3);
  });

  it('ends when the test deletes all tasks', async () => {
    const { app, tasks } = await testApp(parts);
    const waits = rejection(app.get(AsynqClient).call(RenderInvoice, { orderId: '8' }, { processIn: '1h' }));
    await new Promise((resolve) => setImmediate(resolve));
    tasks.clear();
    expect(await waits).toMatchObject({ code: 'ASYNQ_TASK_NOT_FOUND' });
    expect(AsynqTester.from(app).all()).toEqual([]);
  });
});
