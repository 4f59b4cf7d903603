import { describe, expect, it } from 'vitest';
import { AsynqClient } from '../../lib/client/client.js';
import type { AsynqClientOptions } from '../../lib/client/client-options.js';
import { AsynqEvents } from '../../lib/events/events.js';
import {
  BrokerUnavailableError,
  ClosedError,
  DuplicateTaskError,
  InvalidOptionError,
  InvalidTaskError,
  TaskIdConflictError,
} from '../../lib/errors.js';
import { defineTask } from '../../lib/task/definition.js';
import { FakeProducerBroker } from '../support/producer-broker.js';

const NOW = 1_700_000_000_000;

const setUp = (options?: AsynqClientOptions) => {
  const broker = new FakeProducerBroker({ now: NOW });
  return { broker, client: new AsynqClient(broker, options) };
};

/** Lets every promise callback and next tick that is due run. */
const turn = () => new Promise<void>((done) => setImmediate(done));

describe('enqueue', () => {
  it('stores the task and returns its info', async () => {
    const { broker, client } = setUp();
    const Welcome = defineTask<{ userId: number }>('email:welcome', { queue: 'critical', timeout: '30s' });
    const info = await client.enqueue(Welcome, { userId: 42 }, { processIn: '10m', headers: { a: 'b' } });
    expect(broker.calls).toHaveLength(1);
    expect(broker.calls[0]!.queue).toBe('critical');
    const [request] = broker.requests;
    expect(request!.processAt).toBe(NOW / 1000 + 600);
    expect(info).toEqual({
      id: request!.message.id,
      queue: 'critical',
      type: 'email:welcome',
      payload: Buffer.from('{"userId":42}'),
      headers: { a: 'b' },
      state: 'scheduled',
      maxRetry: 25,
      retried: 0,
      lastErr: '',
      lastFailedAt: undefined,
      timeout: 30_000,
      deadline: undefined,
      group: '',
      nextProcessAt: new Date(NOW + 600_000),
      isOrphaned: false,
      retention: 0,
      completedAt: undefined,
      result: undefined,
    });
  });

  it('takes the time from the clock of the broker, at the call', async () => {
    const { broker, client } = setUp();
    broker.clock.advance(5000);
    expect((await client.enqueue('t')).nextProcessAt).toEqual(new Date(NOW + 5000));
  });

  it('uses the codec and the defaults of the client', async () => {
    const codec = { encode: (value: unknown) => Buffer.from(`<${value}>`), decode: String };
    const { broker, client } = setUp({ codec, defaults: { queue: 'low' } });
    expect((await client.enqueue('t', 5)).payload.toString()).toBe('<5>');
    expect(broker.calls[0]!.queue).toBe('low');
  });

  it('refuses invalid options of the client', () => {
    expect(() => setUp({ default: {} } as AsynqClientOptions)).toThrow(InvalidOptionError);
    expect(() => setUp({ default: {} } as AsynqClientOptions)).toThrow('did you mean "defaults"?');
    expect(() => setUp({ defaults: { unique: 5 } })).toThrow(InvalidTaskError);
  });

  it('rejects with the error the status means', async () => {
    const { broker, client } = setUp();
    broker.statusOf = () => 'duplicate';
    await expect(client.enqueue('t')).rejects.toThrow(DuplicateTaskError);
    await expect(client.enqueue('t')).rejects.toThrow(
      'task already exists: another of type "t" with the same payload holds the unique lock in queue "default"',
    );
    broker.statusOf = () => 'conflict';
    await expect(client.enqueue('t')).rejects.toThrow(TaskIdConflictError);
    await expect(client.enqueue('t', undefined, { taskId: 'x' })).rejects.toThrow(
      'task ID conflicts with another task: queue "default" has one with id "x"',
    );
  });

  it('rejects an invalid task before the broker gets it, and never throws', async () => {
    const { broker, client } = setUp();
    const refused = client.enqueue('', {});
    await expect(refused).rejects.toThrow(InvalidTaskError);
    await expect(client.enqueue('t', 1n)).rejects.toThrow(InvalidTaskError);
    await turn();
    expect(broker.calls).toEqual([]);
  });

  it('rejects when the broker throws instead of rejecting', async () => {
    const { broker, client } = setUp();
    broker.producer.enqueue = () => {
      throw new BrokerUnavailableError('away');
    };
    await expect(client.enqueue('t')).rejects.toThrow('away');
  });
});

describe('a call that fails', () => {
  it('is reported once, for all its tasks; a refused task is not reported', async () => {
    const broker = new FakeProducerBroker({ now: NOW });
    const events = new AsynqEvents();
    const client = new AsynqClient(broker, {}, { events });
    const failures: unknown[] = [];
    events.on('enqueueFailed', (event) => failures.push(event));
    const error = new BrokerUnavailableError('away');
    broker.statusOf = (_, queue) => {
      if (queue === 'away') throw error;
      return 'duplicate';
    };
    await Promise.allSettled([1, 2].map((n) => client.enqueue('t', n, { queue: 'away' })));
    await client.enqueueMany('t', [1, 2, 3], { queue: 'away' });
    await client.enqueueMany('t', [4]);
    expect(failures).toEqual([
      { queue: 'away', tasks: 2, error },
      { queue: 'away', tasks: 3, error },
    ]);
  });
});

describe('enqueues of one tick', () => {
  it('are sent together, one call per queue, in order', async () => {
    const { broker, client } = setUp();
    const infos = await Promise.all(
      Array.from({ length: 100 }, (_, n) => client.enqueue('t', n, { queue: n % 2 ? 'odd' : 'even' })),
    );
    expect(broker.calls.map(({ queue, requests }) => [queue, requests.length])).toEqual([
      ['even', 50],
      ['odd', 50],
    ]);
    const payloads = broker.calls[1]!.requests.map((request) => Number(request.message.payload.toString()));
    expect(payloads).toEqual(Array.from({ length: 50 }, (_, n) => 2 * n + 1));
    expect(infos.map((info) => Number(info.payload.toString()))).toEqual(Array.from({ length: 100 }, (_, n) => n));
  });

  it('are sent together when one reply resumes loops of different depth', async () => {
    const { broker, client } = setUp();
    const loop = async (depth: number) => {
      for (let round = 0; round < 10; round++) {
        for (let step = 0; step < depth; step++) await undefined;
        await client.enqueue('t');
      }
    };
    await Promise.all(Array.from({ length: 40 }, (_, n) => loop(n % 5)));
    expect(broker.calls.map((call) => call.requests.length)).toEqual(Array.from({ length: 10 }, () => 40));
  });

  it('do not wait for calls under way', async () => {
    const { broker, client } = setUp();
    broker.hold();
    const first = client.enqueue('t', 1);
    await turn();
    const second = client.enqueue('t', 2);
    await turn();
    expect(broker.underWay).toBe(2);
    broker.release();
    expect((await Promise.all([first, second])).map((info) => info.state)).toEqual(['pending', 'pending']);
  });

  it('of several turns are sent together while a call is under way', async () => {
    const { broker, client } = setUp();
    broker.hold();
    const first = client.enqueue('t');
    await turn();
    const others = Array.from({ length: 5 }, () => turn().then(() => client.enqueue('t')));
    await turn();
    await turn();
    broker.release();
    await Promise.all([first, ...others]);
    expect(broker.calls.map((call) => call.requests.length)).toEqual([1, 5]);
  });

  it('are sent in the same tick when there is only one', async () => {
    const { broker, client } = setUp();
    const enqueued = client.enqueue('t');
    await new Promise<void>((done) => process.nextTick(done));
    expect(broker.calls).toHaveLength(1);
    await enqueued;
  });

  it('are split by number', async () => {
    const { broker, client } = setUp();
    await Promise.all(Array.from({ length: 121 }, () => client.enqueue('t')));
    expect(broker.calls.map((call) => call.requests.length)).toEqual([50, 50, 21]);
  });

  it('are sent within the tick when a call is full, of each queue alone', async () => {
    const { broker, client } = setUp();
    const others = Array.from({ length: 49 }, () => client.enqueue('t', 1, { queue: 'other' }));
    const calls = Array.from({ length: 50 }, () => client.enqueue('t'));
    expect(broker.calls.map(({ queue, requests }) => [queue, requests.length])).toEqual([['default', 50]]);
    await Promise.all([...others, ...calls]);
    expect(broker.calls.map(({ queue }) => queue)).toEqual(['default', 'other']);
  });

  it('are sent in order when the first call was full', async () => {
    const { broker, client } = setUp();
    await Promise.all(Array.from({ length: 75 }, (_, n) => client.enqueue('t', n)));
    const payloads = broker.requests.map((request) => Number(request.message.payload.toString()));
    expect(payloads).toEqual(Array.from({ length: 75 }, (_, n) => n));
  });

  it('are split by bytes, a large one is sent alone', async () => {
    const { broker, client } = setUp();
    const sizes = [600_000, 600_000, 5_000_000, 10, 10];
    await Promise.all(sizes.map((size) => client.enqueue('t', Buffer.alloc(size))));
    const carried = broker.calls.map((call) => call.requests.map((request) => request.message.payload.length));
    expect(carried).toEqual([[600_000], [600_000], [5_000_000], [10, 10]]);
  });

  it('fail one by one by status', async () => {
    const { broker, client } = setUp();
    broker.statusOf = ({ message }) => (message.id === 'b' ? 'conflict' : 'enqueued');
    const results = await Promise.allSettled(['a', 'b', 'c'].map((taskId) => client.enqueue('t', 1, { taskId })));
    expect(broker.calls).toHaveLength(1);
    expect(results.map((result) => result.status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
    expect((results[1] as PromiseRejectedResult).reason).toBeInstanceOf(TaskIdConflictError);
  });

  it('fail together when their call fails, and do not affect other queues', async () => {
    const { broker, client } = setUp();
    const away = new BrokerUnavailableError('connection lost');
    broker.statusOf = (_, queue) => {
      if (queue === 'bad') throw away;
      return 'enqueued';
    };
    const results = await Promise.allSettled(
      ['bad', 'good', 'bad'].map((queue) => client.enqueue('t', queue, { queue })),
    );
    expect(results.map((result) => result.status)).toEqual(['rejected', 'fulfilled', 'rejected']);
    expect((results[0] as PromiseRejectedResult).reason).toBe(away);
    await expect(client.enqueue('t', 1, { queue: 'good' })).resolves.toMatchObject({ queue: 'good' });
  });

  it('are sent without an invalid one', async () => {
    const { broker, client } = setUp();
    const results = await Promise.allSettled([client.enqueue('t'), client.enqueue(' '), client.enqueue('t')]);
    expect(results.map((result) => result.status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
    expect(broker.calls.map((call) => call.requests.length)).toEqual([2]);
  });
});

describe('close', () => {
  it('refuses later calls', async () => {
    const { broker, client } = setUp();
    await client.close();
    await expect(client.enqueue('t')).rejects.toThrow(ClosedError);
    await expect(client.enqueueMany('t', [1])).rejects.toThrow(ClosedError);
    expect(broker.calls).toEqual([]);
  });

  it('sends what is collected and waits for the replies', async () => {
    const { broker, client } = setUp();
    broker.hold();
    const calls = [client.enqueue('t'), client.enqueueMany('t', [1, 2])];
    let closed = false;
    const closing = client.close().then(() => (closed = true));
    await turn();
    expect(broker.calls.map((call) => call.requests.length)).toEqual([1, 2]);
    broker.releaseOne();
    await turn();
    expect(closed).toBe(false);
    broker.releaseOne();
    await turn();
    expect(closed).toBe(true);
    await expect(Promise.all([...calls, closing])).resolves.toHaveLength(3);
  });

  it('lets a long enqueueMany finish', async () => {
    const { broker, client } = setUp();
    broker.hold();
    const many = client.enqueueMany(
      't',
      Array.from({ length: 5000 }, (_, n) => n),
    );
    const closed = client.close();
    await turn();
    broker.release();
    await closed;
    expect((await many).every((result) => result.ok)).toBe(true);
    expect(broker.requests).toHaveLength(5000);
  });

  it('resolves although calls fail, each time it is called', async () => {
    const { broker, client } = setUp();
    broker.statusOf = () => {
      throw new BrokerUnavailableError('away');
    };
    const calls = [client.enqueue('t'), client.close(), client.close()];
    const results = await Promise.allSettled(calls);
    expect(results.map((result) => result.status)).toEqual(['rejected', 'fulfilled', 'fulfilled']);
  });
});
