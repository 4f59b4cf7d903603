import { describe, expect, vi } from 'vitest';
import { RedisCheckpoints } from '../../lib/broker/redis/checkpoints.js';
import { RedisConnections } from '../../lib/broker/redis/connection/connections.js';
import { RedisBroker } from '../../lib/broker/redis/redis-broker.js';
import { AsynqClient } from '../../lib/client/client.js';
import { Server } from '../../lib/server/server.js';
import { retrial } from '../contract/driver.js';
import { it } from '../contract/redis-fixture.js';
import { request } from '../support/messages.js';

describe('a bare task', () => {
  it('is one of which only its message is stored, and is told when asked for', async ({ driver }) => {
    const { broker } = driver;
    const take = { settle: [], take: 1 };
    await driver.enqueue([request({ id: 'a' }), request({ id: 'b' }), request({ id: 'c' })]);
    const [first] = (await broker.consumer.exchange('default', { ...take, bare: true })).tasks;
    expect(first).toMatchObject({ bare: true, pendingSince: undefined });
    const [second] = (await broker.consumer.exchange('default', { ...take, bare: true, since: true })).tasks;
    expect(second).toMatchObject({ bare: true, pendingSince: expect.any(Number) });
    const [third] = (await broker.consumer.exchange('default', take)).tasks;
    expect(third).toMatchObject({ bare: undefined });

    await broker.checkpoints.write(first!.lease, 'a', Buffer.from('1'));
    await driver.settle(retrial(first!, driver.now));
    await broker.maintenance.forward('default');
    const [again] = (await broker.consumer.exchange('default', { ...take, bare: true })).tasks;
    expect(again).toMatchObject({ bare: false, message: { id: 'a' } });
  });

  it('has its steps read from its second attempt on', async ({ driver }) => {
    const broker = new RedisBroker(new RedisConnections({ host: '127.0.0.1', port: driver.server.port }));
    const client = new AsynqClient(broker);
    const read = vi.spyOn(RedisCheckpoints.prototype, 'read');
    const seen: unknown[] = [];
    const reads: number[] = [];
    let end: () => void;
    const ended = new Promise<void>((resolve) => (end = resolve));
    const server = new Server({
      broker,
      options: { retryDelay: () => 0, delayedTaskCheckInterval: 50 },
      handlers: [
        {
          pattern: 'do',
          steps: {},
          handle: async ({ steps, retried }) => {
            seen.push(await steps.run('first', () => retried));
            reads.push(read.mock.calls.length);
            if (retried === 0) throw new Error('once more');
            end();
          },
        },
      ],
    });
    await server.start();
    await client.enqueue('do', undefined, { maxRetry: 1 });
    await ended;
    await server.shutdown();
    await client.close();
    await broker.close();
    read.mockRestore();
    expect(seen).toEqual([0, 0]);
    expect(reads).toEqual([0, 1]);
  });
});
