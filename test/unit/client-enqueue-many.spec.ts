import { describe, expect, expectTypeOf, it } from 'vitest';
import { AsynqClient } from '../../lib/client/client.js';
import type { EnqueueOutcome, EnqueueResult } from '../../lib/enqueue/enqueue-result.js';
import { BrokerUnavailableError, DuplicateTaskError, InvalidTaskError, TaskIdConflictError } from '../../lib/errors.js';
import { defineTask } from '../../lib/task/definition.js';
import { FakeProducerBroker } from '../support/producer-broker.js';

const setUp = () => {
  const broker = new FakeProducerBroker();
  return { broker, client: new AsynqClient(broker) };
};

const numbers = (count: number) => Array.from({ length: count }, (_, n) => n);
const payloadOf = (result: EnqueueResult | undefined) => result?.info && JSON.parse(result.info.payload.toString());
const turn = () => new Promise<void>((done) => setImmediate(done));

describe('enqueueMany', () => {
  it('takes a definition and payloads, and returns results in order', async () => {
    const { broker, client } = setUp();
    const Resize = defineTask<{ n: number }>('image:resize', { queue: 'images' });
    const payloads = numbers(3).map((n) => ({ n }));
    const results = await client.enqueueMany(Resize, payloads, { maxRetry: 2 });
    expect(results.map(payloadOf)).toEqual(payloads);
    expect(results[0]!.info).toMatchObject({ type: 'image:resize', queue: 'images', maxRetry: 2, state: 'pending' });
    expect(broker.calls.map((call) => call.requests.length)).toEqual([3]);
  });

  it('takes tasks of many types, queues and options', async () => {
    const { broker, client } = setUp();
    const Low = defineTask<number>('low', { queue: 'low' });
    const results = await client.enqueueMany([
      { type: 'a', payload: 0 },
      { task: Low, payload: 1 },
      { type: 'b', payload: 2, options: { processIn: '1h' } },
      { task: Low, payload: 3, options: { queue: 'default', group: 'g' } },
    ]);
    expect(results.map(payloadOf)).toEqual([0, 1, 2, 3]);
    expect(results.map((result) => result.info?.state)).toEqual(['pending', 'pending', 'scheduled', 'aggregating']);
    expect(broker.calls.map(({ queue, requests }) => [queue, requests.length])).toEqual([
      ['default', 3],
      ['low', 1],
    ]);
  });

  it('returns results without infos, which are one object, when asked for', async () => {
    const { broker, client } = setUp();
    const Resize = defineTask<{ n: number }>('image:resize');
    const results: EnqueueOutcome[] = await client.enqueueMany(
      [{ task: Resize, payload: { n: 1 } }, { type: ' ' }, { type: 'b', payload: 2 }],
      { infos: false },
    );
    expect(results).toEqual([{ ok: true }, { ok: false, error: expect.any(InvalidTaskError) }, { ok: true }]);
    expect(results[0]).toBe(results[2]);
    const resized = await client.enqueueMany(Resize, [{ n: 2 }], { infos: false, queue: 'images' });
    expect(resized).toEqual([{ ok: true }]);
    expect(await client.enqueueMany('t', [1], { infos: false })).toEqual([{ ok: true }]);
    expect((await client.enqueueMany('t', [1], { infos: true }))[0]?.info?.type).toBe('t');
    expect(broker.calls.flatMap(({ requests }) => requests.map(({ message }) => message.type))).toEqual([
      'image:resize',
      'b',
      'image:resize',
      't',
      't',
    ]);
    expectTypeOf(results[0]!).not.toHaveProperty('info');
    await client.close();
  });

  it.each<[string, () => unknown, string]>([
    ['text', () => ({ infos: 'no' }), 'infos of enqueueMany must be true or false, not "no"'],
    ['null', () => ({ infos: null }), 'infos of enqueueMany must be true or false, not null'],
    ['a wrong name', () => ({ info: false }), 'unknown option of enqueueMany'],
    ['options of the tasks', () => ({ queue: 'low' }), 'unknown option of enqueueMany'],
  ])('refuses as options besides the tasks: %s', async (_, options, message) => {
    const { broker, client } = setUp();
    const enqueueing = client.enqueueMany([{ type: 't' }], options() as { infos: false });
    await expect(enqueueing).rejects.toThrow(InvalidTaskError);
    await expect(enqueueing).rejects.toThrow(message);
    expect(broker.calls).toEqual([]);
  });

  it('returns nothing for no tasks, without a call', async () => {
    const { broker, client } = setUp();
    expect(await client.enqueueMany([])).toEqual([]);
    expect(await client.enqueueMany('t', [])).toEqual([]);
    expect(broker.calls).toEqual([]);
  });

  it('fails invalid tasks alone, before the broker gets them', async () => {
    const { broker, client } = setUp();
    const results = await client.enqueueMany([
      { type: 'ok', payload: 1 },
      { type: ' ' },
      { type: 'ok', payload: 1n },
      { type: 'ok', options: { queue: '' } },
      null,
      { type: 'ok', payloads: 1 },
      { payload: 1 },
      { type: 'ok', task: defineTask('ok') },
      { type: 'ok', payload: 2 },
    ] as never[]);
    expect(broker.requests).toHaveLength(2);
    expect(results.map((result) => result.error?.message ?? 'ok')).toEqual([
      'ok',
      expect.stringContaining('task typename cannot be empty; '),
      expect.stringContaining('payload of task "ok" cannot be encoded'),
      'queue name must contain one or more characters; queue is "": give a text that is not blank',
      'a task of enqueueMany must be an object, not null',
      'unknown key of a task of enqueueMany: "payloads"; did you mean "payload"?',
      'a task of enqueueMany takes either "task" (a definition) or "type" (a name)',
      'a task of enqueueMany takes either "task" (a definition) or "type" (a name)',
      'ok',
    ]);
    for (const { error } of results) if (error) expect(error).toBeInstanceOf(InvalidTaskError);
  });

  it('returns the status of each task', async () => {
    const { broker, client } = setUp();
    broker.statusOf = ({ message }) =>
      message.id === 'dup' ? 'duplicate' : message.id === 'taken' ? 'conflict' : 'enqueued';
    const ids = ['a', 'dup', 'taken', 'b'];
    const results = await client.enqueueMany(ids.map((taskId) => ({ type: 't', options: { taskId } })));
    expect(results.map((result) => result.ok)).toEqual([true, false, false, true]);
    expect(results[1]!.error).toBeInstanceOf(DuplicateTaskError);
    expect(results[2]!.error).toBeInstanceOf(TaskIdConflictError);
    expect(results[3]!.info?.id).toBe('b');
  });

  it('refuses at once what all payloads share', async () => {
    const { broker, client } = setUp();
    await expect(client.enqueueMany(' ', [1, 2])).rejects.toThrow(InvalidTaskError);
    await expect(client.enqueueMany('t', [1, 2], { timeout: -1 })).rejects.toThrow('timeout must not be negative');
    await expect(client.enqueueMany('t', undefined as never)).rejects.toThrow(
      'enqueueMany takes an array of tasks, or',
    );
    expect(broker.calls).toEqual([]);
  });

  it('sends batches of 500 per queue, several at once but not all', async () => {
    const { broker, client } = setUp();
    broker.hold();
    const many = client.enqueueMany('t', numbers(5100));
    await turn();
    const atOnce = broker.underWay;
    expect(atOnce).toBeGreaterThan(1);
    expect(atOnce).toBeLessThan(11);
    broker.releaseOne();
    await turn();
    expect(broker.calls).toHaveLength(atOnce + 1);
    broker.release();
    const results = await many;
    expect(broker.calls.map((call) => call.requests.length)).toEqual([...Array.from({ length: 10 }, () => 500), 100]);
    expect(broker.mostUnderWay).toBe(atOnce);
    expect(results.map(payloadOf)).toEqual(numbers(5100));
    expect(broker.requests.map((request) => Number(request.message.payload.toString()))).toEqual(numbers(5100));
  });

  it('works on several queues at once', async () => {
    const { broker, client } = setUp();
    broker.hold();
    const many = client.enqueueMany(numbers(3).map((n) => ({ type: 't', options: { queue: `q${n}` } })));
    await turn();
    expect(broker.calls.map((call) => call.queue)).toEqual(['q0', 'q1', 'q2']);
    broker.release();
    expect((await many).every((result) => result.ok)).toBe(true);
  });

  it('fails the tasks of a batch that failed, and only those', async () => {
    const { broker, client } = setUp();
    const away = new BrokerUnavailableError('connection lost');
    broker.statusOf = ({ message }) => {
      if (message.payload.toString() === '700') throw away;
      return 'enqueued';
    };
    const results = await client.enqueueMany('t', numbers(1500));
    const failed = results.flatMap((result, index) => (result.error === away ? [index] : []));
    expect(failed).toEqual(numbers(500).map((n) => n + 500));
    expect(results.filter((result) => result.ok)).toHaveLength(1000);
  });

  it('is sent after single calls made before it', async () => {
    const { broker, client } = setUp();
    const single = client.enqueue('single');
    const many = client.enqueueMany('many', [1]);
    const later = client.enqueue('later');
    await Promise.all([single, many, later]);
    expect(broker.requests.map((request) => request.message.type)).toEqual(['single', 'many', 'later']);
  });
});
