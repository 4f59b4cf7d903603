import { describe, expect, it } from 'vitest';
import type { RedisBroker } from '../../lib/broker/redis/redis-broker.js';
import { request } from '../support/messages.js';
import { forgetful } from './forgetful.js';

/** A task that is about to call another one. */
async function calling(broker: RedisBroker) {
  await broker.producer.enqueue('default', [request({ id: 'order' })]);
  const { tasks } = await broker.consumer.exchange('default', { settle: [], take: 1 });
  const id = 'order~pay';
  const made = request({ id, queue: 'other' });
  const call = { step: 'pay', checkpoint: Buffer.from('{}\n'), answer: 'pay', queue: 'other', id, request: made };
  return { lease: tasks[0]!.lease, id, call };
}

describe('a Redis that loses its last writes', () => {
  it('gets a parcel again that it had before, also when a process has yet to remove it', async () => {
    const { server, redis, broker } = await forgetful();
    const { checkpoints, links } = broker;
    const { lease, id, call } = await calling(broker);
    const { parcels } = (await checkpoints.call(lease, [call]))!;
    await redis.save();
    const first = await links.deliver('other', parcels);
    expect(first.parcels).toHaveLength(1);
    await server.restart();
    await links.acknowledge('default', parcels);
    expect(await redis.hlen('asynq:{default}:outbox')).toBe(1);
    for (let rounds = 0; rounds < 3; rounds++) {
      for (const place of ['default', 'other']) {
        const late = (await links.keep(place, 0)).parcels;
        for (const parcel of late) await links.deliver(parcel.to, [parcel]);
        await links.acknowledge(place, late);
      }
    }
    expect(await redis.lrange('asynq:{other}:pending', 0, '-1')).toEqual([id]);
    expect(await redis.hlen('asynq:{default}:outbox')).toBe(0);
  });

  it('has a handler called again that has gone to sleep for a call that is lost; what is left of it creates nothing', async () => {
    const { server, redis, broker } = await forgetful();
    const { checkpoints, consumer, links } = broker;
    const { lease, call } = await calling(broker);
    await redis.save();
    const { parcels } = (await checkpoints.call(lease, [call]))!;
    await server.restart();
    const sleep = { kind: 'sleep', lease, wakeAt: lease.expiresAt + 600, awaits: [{ answer: 'pay' }] } as const;
    await expect
      .poll(() => consumer.exchange('default', { settle: [sleep], take: 0 }).catch(() => undefined))
      .toBeDefined();
    expect(await redis.lrange('asynq:{default}:pending', 0, '-1')).toEqual(['order']);
    let late = parcels;
    while (late.length > 0)
      late = (await Promise.all(late.map((one) => links.deliver(one.to, [one])))).flatMap((reply) => reply.parcels);
    expect(await redis.exists('asynq:{other}:pending')).toBe(0);
  });
});
