import { expect, it } from 'vitest';
import { REFRESH, useConsoleOnRedis } from './console-fixture.js';

/*
 * What the console does with a real Redis: what it costs, and how little one bad key breaks. Every
 * test has queues of its own.
 */

const on = useConsoleOnRedis();

/**
 * The commands that clients sent, without the one SMEMBERS of the names; commands within scripts do
 * not count.
 */
async function sent(): Promise<number> {
  const info = await on.raw.info('commandstats');
  const calls = [...info.matchAll(/cmdstat_(evalsha|eval|sismember|zrange|zremrangebyscore|mget):calls=(\d+)/g)];
  return calls.reduce((sum, [, , number]) => sum + Number(number), 0);
}

it('costs the same for one open page and for ten', async () => {
  const queues = Array.from({ length: 20 }, (_, index) => `q${index}`);
  for (const queue of queues) await on.web.client.enqueue('x', { a: 1 }, { queue });
  const poll = (): Promise<unknown> =>
    Promise.all([on.web.get('live'), on.web.get('queues/q0/pending_tasks'), on.web.get('servers')]);
  const rounds = 5;
  const costOf = async (tabs: number): Promise<number> => {
    await on.raw.config('RESETSTAT');
    for (let round = 0; round < rounds; round++) {
      on.clock.advance(REFRESH);
      await Promise.all(Array.from({ length: tabs }, poll));
    }
    return (await sent()) / rounds;
  };
  await costOf(1); // scripts are loaded
  const [one, ten] = [await costOf(1), await costOf(10)];
  expect(ten).toBe(one);
  // Every 2 seconds: a script for each queue, one for the page of tasks, and the published servers.
  expect(ten).toBeLessThanOrEqual(queues.length + 6);
});

it('costs nothing more for another spelling of the same query', async () => {
  await on.web.client.enqueue('x', { a: 1 }, { queue: 'asked', taskId: 'x' });
  const path = 'queues/asked/pending_tasks';
  const spellings: Readonly<Record<string, readonly string[]>> = {
    [path]: [
      'junk=1',
      'junk=2',
      '%6aunk',
      'page=1',
      'page=x',
      'page=0',
      'page=01',
      'size=20',
      'size=',
      'size=x&page=1',
      'SIZE=5',
      'cursor=',
      'cursor=&page=1',
      'scan=7',
      'order=oldest',
      'type=',
      'size=20&size=3',
      '__proto__=1',
    ],
    [`${path}?size=5&page=2`]: ['page=2&size=5', 'size=05&page=2', '%73ize=5&page=2', 'size=5&page=2&page=3&x'],
    [`${path}?size=900`]: ['size=200', 'size=201', 'size=100000'],
    'queues/asked': ['size=1', 'force=true', '_=1'],
    'queues/asked/tasks/x': ['x', 'payload=1'],
    'queues/asked/failures': ['page=2', 'x=1'],
    servers: ['x=1'],
    queue_stats: ['queues=asked'],
    redis_info: ['x=1'],
  };
  for (const question of Object.keys(spellings)) await on.web.get(question);
  await on.web.get('live');
  await on.raw.config('RESETSTAT');
  for (const [question, others] of Object.entries(spellings)) {
    await on.web.api('HEAD', question);
    for (const query of others) await on.web.get(`${question.split('?')[0]}?${query}`);
  }
  for (let n = 0; n < 5; n++) await on.web.get(`live?since=${n}&x=${n}`);
  expect(await sent()).toBe(0);
});

it('reads the queues once, however many other queries there are', async () => {
  for (const queue of ['a', 'b', 'c']) await on.web.client.enqueue('x', { a: 1 }, { queue });
  await on.web.get('live');
  for (let page = 1; page <= 300; page++) await on.web.get(`queues/a/pending_tasks?page=${page}`);
  await on.raw.config('RESETSTAT');
  await on.web.get('live');
  expect(await sent()).toBe(0);
});

it('searches once while the same search is under way', async () => {
  await on.web.client.enqueueMany('x', [1, 2, 3], { queue: 'searched' });
  const search = () => on.web.get<{ tasks: object[] }>('queues/searched/pending_tasks?type=x&scan=500');
  await search();
  await on.raw.config('RESETSTAT');
  await search();
  const one = await sent();
  await on.raw.config('RESETSTAT');
  const all = await Promise.all(Array.from({ length: 10 }, search));
  expect(all.map(({ tasks }) => tasks.length)).toEqual(Array.from({ length: 10 }, () => 3));
  expect(await sent()).toBeLessThan(3 * one);
});

it('shows one bad queue as one bad row', async () => {
  for (const queue of ['bad', 'good']) await on.web.client.enqueue('x', { a: 1 }, { queue, taskId: 'x' });
  await on.raw.del('asynq:{bad}:pending');
  await on.raw.set('asynq:{bad}:pending', 'no list');
  const { queues } = await on.web.get<{ queues: object[] }>('queues');
  expect(queues).toEqual([
    { queue: 'bad', error: expect.stringContaining('"asynq:{bad}:pending" is a string and must be a list') },
    expect.objectContaining({ queue: 'good', size: 1, pending: 1 }),
  ]);
  const live = await on.web.get<{ samples: { queues: object }[] }>('live');
  expect(live).toMatchObject({ queues: [{ queue: 'bad' }, { queue: 'good' }] });
  expect(Object.keys(live.samples.at(-1)!.queues)).toEqual(['good']);
  expect(await on.web.get('queues/bad')).toMatchObject({ current: { queue: 'bad', error: expect.any(String) } });
  expect(await on.web.get('queues/bad/retry_tasks')).toMatchObject({ tasks: [], stats: { queue: 'bad' } });
  expect((await on.web.api('GET', 'queues/bad/pending_tasks')).status).toBe(500);
  expect(await on.web.get('queue_stats')).toMatchObject({ stats: { good: expect.any(Array) } });
});

it('lists damaged entries beside the others', async () => {
  await on.web.client.enqueue('x', { a: 1 }, { queue: 'damaged', taskId: 'whole' });
  await on.raw.lpush('asynq:{damaged}:pending', 'dangling', 'garbage');
  await on.raw.hset('asynq:{damaged}:t:garbage', 'msg', 'no message', 'state', 'pending');
  const list = await on.web.get<{ damaged: object[] }>('queues/damaged/pending_tasks');
  expect(list).toMatchObject({ tasks: [{ id: 'whole' }] });
  expect(list.damaged).toEqual([
    { id: 'dangling', error: expect.any(String) },
    { id: 'garbage', error: expect.any(String) },
  ]);
  expect((await on.web.api('GET', 'queues/damaged/tasks/garbage')).status).toBe(500);
  expect(await on.web.api('DELETE', 'queues/damaged/tasks/garbage')).toMatchObject({ status: 204 });
});

it('shows a long list by page and by cursor', async () => {
  const payloads = Array.from({ length: 45 }, (_, index) => index);
  await on.web.client.enqueueMany('x', payloads, { queue: 'long' });
  const read = (query: string) =>
    on.web.get<{ tasks: { payload: string }[]; next_cursor: string }>(`queues/long/pending_tasks${query}`);
  const numbers = ({ tasks }: { tasks: { payload: string }[] }) => tasks.map(({ payload }) => Number(payload));
  const first = await read('');
  expect(numbers(first)).toEqual(payloads.slice(0, 20));
  expect(numbers(await read('?page=3'))).toEqual(payloads.slice(40));
  expect(numbers(await read('?page=9'))).toEqual([]);
  expect(numbers(await read('?size=1000&page=x'))).toEqual(payloads);
  expect(numbers(await read('?size=-1'))).toEqual(payloads.slice(0, 20));
  expect(numbers(await read(`?size=30&cursor=${first.next_cursor}`))).toEqual(payloads.slice(20));
  expect((await on.web.api('GET', 'queues/long/pending_tasks?cursor=nonsense')).status).toBe(400);
});

it('shows the information of Redis', async () => {
  await on.raw.config('SET', 'maxmemory-policy', 'allkeys-lru');
  expect(await on.web.get('redis_info')).toMatchObject({
    address: expect.stringContaining(String(on.redis.port)),
    cluster: false,
    raw_cluster_nodes: '',
    queue_locations: null,
    info: { redis_version: expect.any(String) },
    raw_info: expect.stringContaining('# Server'),
    version: expect.any(String),
    role: 'master',
    used_memory: expect.any(Number),
    maxmemory: 0,
    warnings: [expect.stringContaining('set it to noeviction')],
  });
});
