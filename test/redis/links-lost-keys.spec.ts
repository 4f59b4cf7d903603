import { describe, expect } from 'vitest';
import { BatchSession } from '../contract/batch-session.js';
import { it, type RedisDriver } from '../contract/redis-fixture.js';
import { RunSession, step } from '../contract/run-session.js';

/** What somebody has deleted by hand, in every queue. */
const LOST = [['timers'], ['links', 'timers'], ['links', 'timers', 'outbox']] as const;

async function lose({ redis }: RedisDriver, lost: (typeof LOST)[number]): Promise<void> {
  const keys = await Promise.all(lost.map((name) => redis.keys(`asynq:{*}:${name}`)));
  await redis.del(keys.flat());
}

describe.for(LOST)('without its keys %s', (lost) => {
  it('a run goes on, and ends at its deadline', async ({ driver }) => {
    const session = new RunSession(driver);
    const elsewhere = { message: { queue: 'other' } };
    const steps = [step('a'), step('b', { after: ['a'], ...elsewhere }), step('c', { after: ['b'] })];
    await session.start(steps, { deadline: driver.now + 600 });
    await lose(driver, lost);
    await session.keep();
    await session.finish('a');
    await session.finish('b');
    await session.keep();
    expect(await session.states()).toEqual(['running', 'a:succeeded b:succeeded c:ready']);
    await lose(driver, lost);
    driver.clock.advance(600_000);
    await session.keep();
    expect((await session.stored()).state).toBe('cancelled');
    await session.expectNothingLeft();
  });

  it('an open batch is closed in time, and a chunk that was never added is given up', async ({ driver }) => {
    const session = new BatchSession(driver);
    const batch = await session.open();
    await session.reserve(batch, 3);
    await lose(driver, lost);
    for (let minutes = 0; minutes < 70; minutes++) {
      driver.clock.advance(60_000);
      await session.keep();
    }
    expect(await session.callbacks(batch)).toEqual(['complete', 'success']);
  });

  it('a batch learns of members that ended unseen, and of its end', async ({ driver }) => {
    const session = new BatchSession(driver);
    const batch = await session.open();
    await session.add(batch, 3, 'default');
    await session.close(batch);
    await lose(driver, lost);
    const tasks = await driver.take(3);
    for (const { lease } of tasks) await driver.world.completeUnseen('default', lease.id);
    for (let minutes = 0; minutes < 4; minutes++) {
      driver.clock.advance(60_000);
      await session.keep();
    }
    expect(await session.callbacks(batch)).toEqual(['complete', 'success']);
  });
});
