import { describe, expect, it } from 'vitest';
import { REFRESH, useConsoleOnRedis } from './console-fixture.js';

/*
 * How the console stands damage and load in Redis: keys of the wrong type, and a Redis that is
 * slow, or stands still.
 */

const on = useConsoleOnRedis();

const WRONG: Readonly<Record<string, (key: string) => Promise<unknown>>> = {
  string: (key) => on.raw.set(key, 'nothing of asynq'),
  hash: (key) => on.raw.hset(key, 'msg', 'x'),
};

/** A task in `pending` and one in a group, in each of two queues. */
async function fill(): Promise<void> {
  for (const queue of ['bad', 'good']) {
    await on.web.client.enqueue('x', {}, { queue, taskId: 'x' });
    await on.web.client.enqueue('x', {}, { queue, taskId: 'g', group: 'g' });
  }
  await on.raw.sadd('asynq:queues', 'bad', 'good');
}

/** Every request of the API about one queue. */
const pagesOf = (queue: string): string[] => [
  ...['', '/groups', '/groups/g/aggregating_tasks', '/tasks/x'].map((path) => `queues/${queue}${path}`),
  ...['pending', 'active', 'scheduled', 'retry', 'archived', 'completed'].map(
    (state) => `queues/${queue}/${state}_tasks`,
  ),
];
const SHARED = ['queues', 'live', 'queue_stats', 'servers', 'scheduler_entries', 'redis_info'];

async function ask(pages: readonly string[]): Promise<Record<string, string>> {
  const replies = await Promise.all(
    pages.map(async (page) => {
      const { status, headers } = await on.web.api('GET', page);
      return [page, status === 200 ? 'ok' : `${status} ${String(headers['x-asynq-error'])}`];
    }),
  );
  return Object.fromEntries(replies) as Record<string, string>;
}

const allOk = (pages: readonly string[]) => Object.fromEntries(pages.map((page) => [page, 'ok']));

describe('a key of the wrong type', () => {
  const day = new Date(on.clock.now()).toISOString().slice(0, 10);

  it.each([
    'pending',
    'active',
    'lease',
    'scheduled',
    'retry',
    'archived',
    'completed',
    'groups',
    'aggregation_sets',
    'paused',
    'processed',
    'failed',
    'delayed_groups',
    't:x',
    'g:g',
    `processed:${day}`,
    `failed:${day}`,
  ])('of one queue harms only that queue: %s', async (name) => {
    for (const make of Object.values(WRONG)) {
      await on.raw.flushall();
      await fill();
      await on.raw.del(`asynq:{bad}:${name}`);
      await make(`asynq:{bad}:${name}`);
      on.clock.advance(REFRESH);
      const good = [...SHARED, ...pagesOf('good')];
      expect(await ask(good)).toEqual(allOk(good));
      for (const reply of Object.values(await ask(pagesOf('bad')))) {
        expect(reply).toMatch(/^ok$|^500 ASYNQ_WRONG_KEY_TYPE$|^404 ASYNQ_TASK_NOT_FOUND$/);
      }
    }
  });

  it.each([
    ['asynq:servers', ['servers']],
    ['asynq:workers', []],
    ['asynq:schedulers', ['scheduler_entries']],
    ['asynq:servers:{h:1:s}', []],
    ['asynq:workers:{h:1:s}', []],
    ['asynq:schedulers:{s}', []],
  ])('harms only what it belongs to, and does not look like an outage of Redis: %s', async (key, broken) => {
    for (const make of Object.values(WRONG)) {
      await on.raw.flushall();
      await fill();
      const later = Math.floor(on.clock.now() / 1000) + 60;
      await on.raw.zadd('asynq:servers', later, 'asynq:servers:{h:1:s}');
      await on.raw.zadd('asynq:schedulers', later, 'asynq:schedulers:{s}');
      await on.raw.del(key);
      await make(key);
      on.clock.advance(REFRESH);
      const pages = [...SHARED, ...pagesOf('good')];
      const wrong = Object.fromEntries(broken.map((page) => [page, '500 ASYNQ_WRONG_KEY_TYPE']));
      expect(await ask(pages)).toEqual({ ...allOk(pages), ...wrong });
    }
  });

  it('is named also when it hides all queues', async () => {
    await on.raw.set('asynq:queues', 'x');
    const { status, text } = await on.web.api('GET', 'live');
    expect([status, text]).toEqual([500, expect.stringContaining('what asynq keeps in it: "asynq:queues"')]);
  });
});

describe('a Redis that does not respond', () => {
  const stand = () => process.kill(on.redis.pid!, 'SIGSTOP');
  const goOn = () => process.kill(on.redis.pid!, 'SIGCONT');
  const scripts = async (): Promise<number> =>
    Number(/cmdstat_evalsha:calls=(\d+)/.exec(await on.raw.info('commandstats'))?.[1] ?? 0);

  it('is asked once for any number of clients, however long it takes, and all get the reply', async () => {
    const queues = Array.from({ length: 5 }, (_, index) => `q${index}`);
    for (const queue of queues) await on.web.client.enqueue('x', {}, { queue });
    await on.raw.sadd('asynq:queues', ...queues);
    await ask(['live']); // scripts are loaded
    on.clock.advance(REFRESH);
    await on.raw.config('RESETSTAT');
    stand();
    const asked: Promise<Record<string, string>>[] = [];
    try {
      for (let period = 0; period < 10; period++, on.clock.advance(REFRESH)) {
        for (let tab = 0; tab < 10; tab++) asked.push(ask(['live', 'queues/q0/pending_tasks']));
        // All requests have reached the console before the clock moves.
        await ask(['config']);
      }
    } finally {
      goOn();
    }
    for (const reply of await Promise.all(asked)) {
      expect(reply).toEqual({ live: 'ok', 'queues/q0/pending_tasks': 'ok' });
    }
    // Every queue and the list once; and once more by those that were after the samples.
    expect(await scripts()).toBeLessThanOrEqual(2 * (queues.length + 2));
  });
});

describe('tasks with scores beyond every possible time', () => {
  const SETS: Readonly<Record<string, string>> = { aggregating: 'g:g' };

  it.each(['scheduled', 'retry', 'archived', 'completed', 'aggregating'])(
    '%s: every page shows them',
    async (state) => {
      await on.raw.sadd('asynq:queues', 'bad');
      const scores = ['-inf', '-1e300', '1e300', 'inf'];
      for (const id of scores) {
        await on.web.client.enqueue(
          'x',
          {},
          { queue: 'bad', taskId: id, ...(state === 'aggregating' && { group: 'g' }) },
        );
        await on.raw.del('asynq:{bad}:pending');
        await on.raw.hset(`asynq:{bad}:t:${id}`, { state });
        await on.raw.hdel(`asynq:{bad}:t:${id}`, 'pending_since');
        await on.raw.zadd(`asynq:{bad}:${SETS[state] ?? state}`, id, id);
      }
      const list = state === 'aggregating' ? 'groups/g/aggregating_tasks' : `${state}_tasks`;
      for (const path of [
        'queues',
        'queues/bad',
        `queues/bad/${list}`,
        ...scores.map((id) => `queues/bad/tasks/${id}`),
      ]) {
        const { status, text } = await on.web.api('GET', path);
        expect([path, status]).toEqual([path, 200]);
        if (path.endsWith('_tasks')) for (const id of scores) expect(text).toContain(`"id":"${id}"`);
      }
    },
  );
});
