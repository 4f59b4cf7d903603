import { Injectable } from '@nestjs/common';
import { Test, type TestingModule } from '@nestjs/testing';
import {
  AsynqClient,
  AsynqInspector,
  AsynqModule,
  defineTask,
  Payload,
  SkipRetry,
  TaskCtx,
  TaskHandler,
  type TaskContext,
  workflow,
} from 'nestjs-asynq';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import { runInProcess } from '../support/command-line.js';
import { startRedis, type RedisProcess } from '../support/redis.js';
import { quiet } from '../nest/support.js';

interface Order {
  readonly orderId: string;
}
const Pay = defineTask<Order, { captureId: string }>('payment:capture');
const Receipt = defineTask<Order, number>('receipt:send', { queue: 'mail' });
const Close = defineTask<Order, string>('order:close', { queue: 'cpu' });
const Parcel = defineTask<Order, string>('parcel:send', { queue: 'cpu' });
const Wait = defineTask<undefined, string>('wait');
const Grow = defineTask<number, number>('grow');

const state = { broken: false, started: (_: TaskContext): void => undefined };

@Injectable()
class Handlers {
  @TaskHandler(Pay)
  pay(@Payload() { orderId }: Order) {
    return { captureId: `capture ${orderId}` };
  }

  @TaskHandler(Receipt)
  receipt() {
    if (state.broken) throw new SkipRetry('no printer');
    return 42;
  }

  @TaskHandler(Parcel)
  parcel() {
    return 'sent';
  }

  @TaskHandler(Close)
  async close(@TaskCtx() task: TaskContext) {
    const { captureId } = await task.workflow.result('pay', Pay);
    const results = await task.workflow.results();
    return `${captureId} ${JSON.stringify(results)}`;
  }

  @TaskHandler(Wait)
  async wait(@TaskCtx() task: TaskContext) {
    const { signal } = task;
    const aborted = new Promise((resolve) => signal.addEventListener('abort', resolve));
    state.started(task);
    await aborted;
    throw signal.reason;
  }

  @TaskHandler(Grow)
  async grow(@Payload() left: number, @TaskCtx() task: TaskContext) {
    const { step, name } = task.workflow;
    if (left > 0) await task.workflow.add(`${name}-${left}`, Grow, left - 1, { after: step });
    return left;
  }
}

const fulfil = (orderId: string) =>
  workflow('order:fulfil')
    .add('pay', Pay, { orderId })
    .add('receipt', Receipt, { orderId }, { after: 'pay' })
    .add('parcel', Parcel, { orderId }, { after: 'pay' })
    .add('close', Close, { orderId }, { after: ['receipt', 'parcel'] });

let redis: RedisProcess;
let app: TestingModule;
beforeAll(async () => {
  redis = await startRedis();
  const server = { concurrency: 20, queues: { default: 1, mail: 1, cpu: 1 } };
  app = await Test.createTestingModule({
    imports: [AsynqModule.forRoot({ connection: { url: redis.url }, server })],
    providers: [Handlers],
  })
    .setLogger(quiet)
    .compile();
  await app.init();
});
afterAll(async () => {
  await app.close();
  await redis.stop();
});

const client = (): AsynqClient => app.get(AsynqClient);
const command = async (line: string) => runInProcess(['--uri', redis.url, ...line.split(' ')]);

describe('a workflow on Redis', () => {
  it('goes through queues; its result is read by a later step, and leaves no task', async () => {
    const run = await client().start(fulfil('7'), { id: '7' });
    expect((await client().start(fulfil('7'), { id: '7' })).created).toBe(false);
    const { state: ended, steps } = await run.done({ timeout: '20s' });
    expect(ended).toBe('succeeded');
    expect(steps).toEqual({
      pay: { state: 'succeeded', result: { captureId: 'capture 7' } },
      receipt: { state: 'succeeded', result: 42 },
      parcel: { state: 'succeeded', result: 'sent' },
      close: { state: 'succeeded', result: 'capture 7 {"receipt":42,"parcel":"sent"}' },
    });
    await run.delete();
    const keys = new Redis(redis.port, redis.host);
    onTestFinished(() => keys.disconnect());
    await vi.waitFor(async () => {
      const left = await keys.keys('asynq:*');
      expect(left.filter((key) => /order:fulfil|:(?:t:.*|links|outbox|runs|timers)$/.test(key))).toEqual([]);
    });
  });

  it('runs 200 of them at a time, started in bulk', async () => {
    const ids = Array.from({ length: 200 }, (_, n) => `bulk-${n}`);
    const results = await client().startMany(ids.map((id) => ({ workflow: fulfil(id), id })));
    const ended = await Promise.all(results.map(({ run }) => run!.done({ timeout: '25s' })));
    expect(new Set(ended.map((outcome) => outcome.state))).toEqual(new Set(['succeeded']));
    expect(ended[199]!.steps.pay.result).toEqual({ captureId: 'capture bulk-199' });
  });

  it('grows while it runs', async () => {
    const run = await client().start(workflow('growing').add('first', Grow, 5), { id: '1' });
    const { state: ended, steps } = await run.done({ timeout: '20s' });
    expect(ended).toBe('succeeded');
    expect(Object.keys(steps)).toEqual(['first', ...[5, 4, 3, 2, 1].map((left) => `growing-${left}`)]);
  });

  it('is retried by the command line when a step has failed', async () => {
    state.broken = true;
    onTestFinished(() => void (state.broken = false));
    const run = await client().start(fulfil('broken'), { id: 'broken' });
    expect((await run.done({ timeout: '20s' })).state).toBe('failed');
    const { status, stdout } = await command('workflow inspect -q default order:fulfil/broken');
    expect(status).toBe(0);
    expect(stdout).toContain('State:   failed');
    const lines = stdout.split('\n').slice(-6, -1);
    expect(lines.map((line) => line.split(/ {2,}/).filter((cell) => cell !== ''))).toEqual([
      ['Step', 'State', 'Took', 'Task', 'Also after', 'Error'],
      ['pay', 'succeeded', expect.stringMatching(/s$/), 'payment:capture'],
      ['receipt', 'failed', expect.stringMatching(/s$/), 'receipt:send', 'no printer'],
      ['close', 'cancelled', 'order:close', 'parcel', '"receipt" has failed'],
      ['parcel', 'succeeded', expect.stringMatching(/s$/), 'parcel:send'],
    ]);
    const refused = await command('workflow retry -q default order:fulfil/none');
    expect([refused.status, refused.stderr]).toEqual([1, expect.stringContaining('workflow run not found')]);
    state.broken = false;
    expect((await command('workflow retry -q default order:fulfil/broken')).stdout).toBe(
      'Run "order:fulfil/broken" is running: 1 step runs again\n',
    );
    expect((await run.done({ timeout: '20s' })).state).toBe('succeeded');
    expect((await command('workflow rm -q default order:fulfil/broken --yes')).stdout).toContain('is deleted');
  });

  it('is cancelled by the command line with what it runs, and listed', async () => {
    const started = new Promise((resolve) => (state.started = resolve));
    const flow = workflow('endless').add('wait', Wait).add('never', Grow, 1, { after: 'wait' });
    const run = await client().start(flow, { id: 'a' });
    await started;
    const { stdout } = await command('workflow cancel -q default endless/a --reason withdrawn');
    expect(stdout).toBe('Run "endless/a" is cancelled\n');
    const outcome = await run.done({ timeout: '20s' });
    expect(outcome.state).toBe('cancelled');
    expect(outcome.steps.never).toEqual({ state: 'cancelled', error: 'withdrawn' });
    const listed = JSON.parse((await command('workflow ls --json')).stdout) as { id: string }[];
    expect(listed[0]).toMatchObject({ id: 'endless/a', queue: 'default', state: 'cancelled', reason: 'withdrawn' });
    expect((await command('workflow ls -q default --size 1')).stdout).toMatch(/endless\/a +default +cancelled +2/);
    expect(await app.get(AsynqInspector).getWorkflow('default', 'endless/b')).toBeUndefined();
  });
});
