import { describe, expect, it } from 'vitest';
import type { EnqueueRequest } from '../../lib/broker/broker.js';
import { request } from '../support/messages.js';
import { useBroker } from './broker-fixture.js';
import { startProxy } from './proxy.js';

const fixture = useBroker();

/** Finishes a set of one task through a proxy that lets the call through, loses the reply and then the connection. */
async function finishTwice(made: EnqueueRequest | undefined, between: () => Promise<unknown> = async () => undefined) {
  const proxy = await startProxy(fixture.server.port);
  const broker = fixture.open(proxy.port);
  const uniqueKey = fixture.keys.unique('part', undefined);
  // So that Redis knows the script.
  const none = { queue: 'default', group: 'g', key: 'asynq:{default}:g:g:none', deadline: 0, tasks: [], damaged: [] };
  expect(await broker.groups.finishSet(none, undefined)).toBe('lost');
  await broker.producer.enqueue('default', [request({ id: 'part', groupKey: 'g', uniqueKey }, { uniqueTtl: 60 })]);
  const policy = { gracePeriod: 0, maxDelay: 0, maxSize: 0 };
  const { sets } = await broker.groups.claimDueSets('default', () => policy, 1);
  const set = await broker.groups.readSet(sets[0]!);
  proxy.holdReplies();
  const finished = broker.groups.finishSet(set, made);
  await expect.poll(() => fixture.redis.exists(fixture.keys.task('part'))).toBe(0);
  await between();
  proxy.cut();
  return finished;
}

describe('a set whose end is not answered', () => {
  it.each<[string, EnqueueRequest]>([
    ['pending', request({ id: 'whole' })],
    [
      'unique, with the lock of a member',
      request({ id: 'whole', uniqueKey: 'asynq:{default}:unique:part:' }, { uniqueTtl: 9 }),
    ],
    ['scheduled', request({ id: 'whole', groupKey: 'h' }, { processAt: 2 ** 32 })],
  ])('was finished all the same: a task that is %s', async (_, made) => {
    expect(await finishTwice(made)).toBe('finished');
    const tasks = await fixture.redis.keys(fixture.keys.task('*'));
    expect(tasks).toEqual([fixture.keys.task('whole')]);
  });

  it('is taken for lost when the task has gone on since, and nothing is made twice', async () => {
    const run = async () => fixture.redis.del(fixture.keys.task('whole'), fixture.keys.pending);
    expect(await finishTwice(request({ id: 'whole' }), run)).toBe('lost');
    expect(await fixture.redis.exists(fixture.keys.task('whole'), fixture.keys.pending)).toBe(0);
  });

  it('is gone where it was only to be deleted', async () => {
    expect(await finishTwice(undefined)).toBe('lost');
    expect(await fixture.redis.keys('asynq:{default}:*')).toEqual([]);
  });
});
