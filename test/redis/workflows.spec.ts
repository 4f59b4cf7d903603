import { describe, expect } from 'vitest';
import type { Lease } from '../../lib/broker/broker.js';
import { taskIdOfStep } from '../../lib/broker/workflows.js';
import { it, type RedisDriver } from '../contract/redis-fixture.js';
import { RunSession, step } from '../contract/run-session.js';

const OTHER = { message: { queue: 'other' } };

async function keysOf({ redis }: RedisDriver, pattern: string): Promise<string[]> {
  return (await redis.keys(pattern)).toSorted();
}

describe('a run on Redis', () => {
  it('leaves no key behind when it is deleted', async ({ driver }) => {
    const session = new RunSession(driver);
    await session.start([step('a'), step('b', { after: ['a'], ...OTHER }), step('c', { after: ['b'] })]);
    await session.finish('a');
    await session.fail('b');
    await session.expectNothingLeft();
    const left = await keysOf(driver, '*');
    const kept = /^asynq:(queues|linked|\{\w+\}:(processed|failed)(:\d{4}-\d\d-\d\d)?)$/;
    expect(left.filter((key) => !kept.test(key))).toEqual([]);
  });

  it('ends when the data of a queue with its steps is lost', async ({ driver }) => {
    const session = new RunSession(driver);
    await session.start([step('a', OTHER), step('b', { after: ['a'] }), step('z', { after: ['b'], onFailure: 'run' })]);
    await driver.redis.del(await keysOf(driver, 'asynq:{other}:*'));
    driver.clock.advance(600_000);
    await session.keep();
    expect(await session.states()).toEqual(['running', 'a:failed b:cancelled z:ready']);
    expect((await session.step('a')).error).toBe('deleted');
    await session.finish('z');
    await session.expectNothingLeft();
  });

  it.for(['default', 'other'])(
    'asks for its tasks when their links are lost in queue %s',
    async (queue, { driver }) => {
      const session = new RunSession(driver);
      const message = { queue };
      await session.start(['a', 'b', 'c'].map((name) => step(name, { message })));
      await session.claim('a');
      const task = await session.claim('b');
      await driver.redis.del(driver.keyspace.queue(queue).links);
      await driver.exchange([{ kind: 'archive', lease: task!.lease, message: task!.message }], 0, queue);
      driver.clock.advance(600_000);
      await session.keep();
      expect(await session.states()).toEqual(['running', 'a:ready b:failed c:ready']);
      await session.finish('a', 'c');
      expect((await session.stored()).state).toBe('failed');
      await session.expectNothingLeft();
    },
  );

  it('is read and written once for all its steps that succeed together, unless it has grown', async ({ driver }) => {
    const session = new RunSession(driver);
    const names = Array.from({ length: 10 }, (_, n) => `s${n}`);
    await session.start([...names.map((name) => step(name)), step('end', { after: names })]);
    const leases: Lease[] = [];
    for (const name of names) leases.push((await session.claim(name))!.lease);
    const settle = async (from: number, to: number) => {
      await driver.redis.config('RESETSTAT');
      const settlements = leases.slice(from, to).map((lease) => ({ kind: 'done', lease, uniqueKey: '' }) as const);
      session.took(await driver.exchange(settlements, 0));
      const stats = await driver.redis.info('commandstats');
      return ['hmget', 'hset'].map((name) => Number(new RegExp(`cmdstat_${name}:calls=(\\d+)`).exec(stats)?.[1]));
    };
    // The run; the run.
    expect(await settle(0, 8)).toEqual([1, 1]);
    await session.grow(step('more', { after: ['s9'] }));
    // Its link knows the number of steps before: the run is read again, and then the steps behind.
    expect(await settle(8, 9)).toEqual([3, 1]);
    expect(await session.states()).toEqual([
      'running',
      `${names.map((name) => `${name}:${name === 's9' ? 'ready' : 'succeeded'}`).join(' ')} end:waiting more:waiting`,
    ]);
    await settle(9, 10);
    await session.finish('end', 'more');
    await session.expectNothingLeft();
  });

  it.for(['wf:1', 'order/17', 'order/a/b'].flatMap((id) => [[id, 'check'] as const, [id, 'keep'] as const]))(
    'of id %s finds its step by the id of a task that is gone, with its link: %s',
    async ([id, how], { driver }) => {
      const session = new RunSession(driver, id);
      await session.start([step('a', {}, id), step('sub/pay', {}, id), step('end', { after: ['sub/pay'] }, id)]);
      const gone = taskIdOfStep(id, 'sub/pay');
      await driver.redis.lrem(driver.keys.pending, 0, gone);
      await driver.redis.del(driver.keys.task(gone));
      if (how === 'check') session.took(await session.links.check('default', [gone, `${gone}~`, 'sub~pay', '~']));
      else await session.keep();
      await session.relay();
      expect(await session.states()).toEqual(['running', 'a:ready sub/pay:failed end:cancelled']);
      await session.finish('a');
      expect((await session.stored()).state).toBe('failed');
      await session.expectNothingLeft();
    },
  );

  it('of an id that has been used before learns nothing from a task of the earlier one', async ({ driver }) => {
    const session = new RunSession(driver);
    await session.start([step('a'), step('b', { after: ['a'] })]);
    const late = (await session.claim('a'))!;
    session.took(await session.workflows.cancel('default', 'wf:1', 'why'));
    await driver.redis.del(driver.keyspace.queue('default').run('wf:1'), driver.keyspace.queue('default').runs);
    driver.clock.advance(1_000);
    await session.start([step('a'), step('b', { after: ['a'] })]);
    expect((await session.states())[1]).toBe('a:failed b:cancelled'); // its task has the id
    await session.end(late, 'done');
    await session.relay();
    expect((await session.states())[1]).toBe('a:failed b:cancelled');
    await session.expectNothingLeft();
  });

  it('offers a task again that has not left yet, and does not ask for it', async ({ driver }) => {
    const session = new RunSession(driver);
    await session.begin([step('a', OTHER)]);
    const sent = [...session.sent];
    session.lose();
    driver.clock.advance(600_000);
    const pass = await session.links.keep('default', 3600);
    expect(pass.parcels.map(({ key }) => key.split(' ', 2))).toEqual([['other', 'offer']]);
    for (const parcel of sent) session.took(await session.links.deliver(parcel.to, [parcel]));
    await session.keep();
    await session.finish('a');
    expect((await session.stored()).state).toBe('succeeded');
  });

  it.for([
    ['c', 'x'],
    ['s:b', 'x'],
    ['d:b', '{'],
    ['d:a', '['],
    ['o', '}'],
  ])('does not hinder its queue when its field %s is damaged', async ([field, value], { driver }) => {
    const session = new RunSession(driver);
    await session.start([step('a'), step('b', { after: ['a'] })]);
    await driver.redis.hset(driver.keys.run('wf:1'), field!, value!);
    const task = await driver.takeOne();
    expect(await session.end(task, 'done')).toEqual([]);
    expect(await driver.stateOf('wf:1~a')).toBeUndefined();
    await session.keep();
  });

  it.for([
    ['c', 'succeeded', 'a:succeeded b:succeeded'],
    ['o', 'succeeded', 'a:succeeded b:succeeded'],
    ['s:b', 'failed', 'a:succeeded b:failed'],
    // The link of its task knows all that its success writes.
    ['s:a', 'succeeded', 'a:succeeded b:succeeded'],
    ['d:b', 'succeeded', 'a:succeeded b:succeeded'],
  ] as const)('is counted again when its field %s is damaged, and ends', async ([field, state, steps], { driver }) => {
    const session = new RunSession(driver);
    const { workflows } = session;
    await session.start([step('a'), step('b', { after: ['a'] })]);
    await driver.redis.hset(driver.keys.run('wf:1'), field, 'x');
    expect(await workflows.runs('default', { offset: 0, size: 5 })).toMatchObject([{ id: 'wf:1' }]);
    expect((await workflows.run('default', 'wf:1'))?.graph).toHaveLength(2);
    await session.settle('a');
    driver.clock.advance(600_000);
    await session.keep();
    if (state === 'succeeded') await session.finish('b');
    expect(await session.states()).toEqual([state, steps]);
    if (state === 'failed') expect((await session.step(field.slice(2))).error).toBe('its record in Redis is damaged');
    await session.expectNothingLeft();
  });

  it('counts a damaged step once that succeeds after the run was counted again, among others', async ({ driver }) => {
    const session = new RunSession(driver);
    await session.start([
      step('a'),
      step('b'),
      step('c'),
      step('d'),
      step('z', { after: ['a', 'b', 'c', 'd'], onFailure: 'wait' }),
    ]);
    const [a, b] = [(await session.claim('a'))!, (await session.claim('b'))!];
    await driver.redis.hset(driver.keys.run('wf:1'), 's:a', 'x');
    await driver.redis.hdel(driver.keys.run('wf:1'), 'c');
    expect(await session.grow(step('b'))).toBe('taken');
    expect(await session.states()).toEqual(['running', 'a:failed b:ready c:ready d:ready z:waiting']);
    const settlements = [a, b].map(({ lease }) => ({ kind: 'done', lease, uniqueKey: '' }) as const);
    session.took(await driver.exchange(settlements, 0));
    expect(await session.states()).toEqual(['running', 'a:succeeded b:succeeded c:ready d:ready z:waiting']);
    await session.finish('c', 'd', 'z');
    expect((await session.stored()).state).toBe('succeeded');
    await session.expectNothingLeft();
  });

  it.for(['delete', 'grow'])(
    'stores the steps that begin because it was counted again by a call that does nothing: %s',
    async (call, { driver }) => {
      const session = new RunSession(driver);
      await session.start([step('a'), step('b', { after: ['a'], onFailure: 'run' })]);
      const task = await driver.takeOne();
      await driver.redis.hset(driver.keys.run('wf:1'), 's:a', 'x');
      await driver.redis.hdel(driver.keys.run('wf:1'), 'c');
      if (call === 'delete') expect((await session.workflows.delete('default', 'wf:1')).status).toBe('running');
      else expect(await session.grow(step('b'))).toBe('taken');
      await session.finish('b');
      await session.end(task, 'done');
      expect((await session.stored()).state).toBe('succeeded');
      await session.expectNothingLeft();
    },
  );

  it('keeps its timer and its place in the list when its counts and a step are lost', async ({ driver }) => {
    const session = new RunSession(driver);
    await session.start([step('a'), step('b', { after: ['a'] })]);
    await driver.redis.hdel(driver.keys.run('wf:1'), 's:b', 'c');
    driver.clock.advance(600_000);
    await session.keep();
    expect(await session.states()).toEqual(['running', 'a:ready b:failed']);
    expect(await session.workflows.runs('default', { offset: 0, size: 5 })).toHaveLength(1);
    expect(await driver.redis.zcard(driver.keys.timers)).toBe(1);
    await session.finish('a');
    await session.expectNothingLeft();
  });

  it('has failed in a step whose record has the right size and says nothing', async ({ driver }) => {
    const session = new RunSession(driver);
    await session.start([step('a'), step('b', { after: ['a'] })]);
    await driver.redis.hset(driver.keys.run('wf:1'), 's:b', `z${' '.repeat(26)}`);
    await session.finish('a');
    expect(await session.states()).toEqual(['failed', 'a:succeeded b:failed']);
    await session.expectNothingLeft();
  });

  it.for([
    ['o', '{"retention":"x"}'],
    ['o', '{"deadline":"x"}'],
    ['o', '{"retention":null,"deadline":null}'],
    ['d:b', '\x90{"n":1,"t":"x","u":"asynq:{default}:u","l":"x"}'],
    ['d:a', '\x91\x91\xa1x{"n":0,"t":"x"}'],
  ] as const)('does not take others with it when its field %s is %s', async ([field, value], { driver }) => {
    const session = new RunSession(driver);
    const other = new RunSession(driver, 'wf:2');
    await session.start([step('a'), step('b', { after: ['a'], delay: 1 })]);
    await other.start([step('a', {}, 'wf:2'), step('b', { after: ['a'] }, 'wf:2')]);
    await driver.redis.hset(driver.keys.run('wf:1'), field, Buffer.from(value, 'latin1'));
    const tasks = await driver.take(2);
    const settle = tasks.map(({ lease }) => ({ kind: 'done' as const, lease, uniqueKey: '' }));
    await driver.exchange(settle, 0);
    await other.finish('b');
    expect((await other.stored()).state).toBe('succeeded');
  });

  it('does not hinder its queue when its key is of another program', async ({ driver }) => {
    const session = new RunSession(driver);
    await session.start([step('a')]);
    await driver.redis.del(driver.keys.run('wf:1'));
    await driver.redis.set(driver.keys.run('wf:1'), 'x');
    await session.end(await driver.takeOne(), 'done');
    expect(await driver.stateOf('wf:1~a')).toBeUndefined();
    driver.clock.advance(600_000);
    await session.keep();
  });

  it('has ten thousand steps', { timeout: 120_000 }, async ({ driver }) => {
    const session = new RunSession(driver);
    const names = Array.from({ length: 10_000 }, (_, n) => `s${n}`);
    await session.start(names.map((name, n) => step(name, { after: n === 0 ? [] : [names[n - 1]!] })));
    await session.fail('s0');
    expect(await session.stored()).toMatchObject({ state: 'failed', steps: 10_000, open: 0, failed: 1 });
    await session.act('run', 'wf:1~s0');
    await session.finish('s0');
    expect(await session.stored()).toMatchObject({ state: 'running', open: 9_999, failed: 0 });
    session.took(await session.workflows.cancel('default', 'wf:1', 'why'));
    await session.expectNothingLeft();
  });

  it('lets 3,000 steps of two queues go at once', { timeout: 120_000 }, async ({ driver }) => {
    const session = new RunSession(driver);
    const names = Array.from({ length: 3_000 }, (_, n) => `s${n}`);
    const wide = names.map((name, n) => step(name, { after: ['a'], ...(n % 2 === 0 ? OTHER : {}) }));
    await session.start([step('a'), ...wide, step('z', { after: names })]);
    await session.finish('a');
    for (const queue of ['default', 'other']) {
      const { tasks } = await driver.exchange([], 2_000, queue);
      expect(tasks).toHaveLength(1_500);
      const settle = tasks.map(({ lease }) => ({ kind: 'done' as const, lease, uniqueKey: '' }));
      session.took(await driver.exchange(settle, 0, queue));
      await session.keep();
    }
    expect((await session.step('z')).state).toBe('ready');
    await session.finish('z');
    await session.expectNothingLeft();
  });
});
