import fc from 'fast-check';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { Scripts } from '../../lib/broker/redis/scripts/scripts.js';
import { ManualClock } from '../../lib/clock.js';
import { BrokerUnavailableError } from '../../lib/errors.js';
import { Driver, withoutLockExpiry } from './driver.js';
import { memoryWorld } from './memory-world.js';
import { redisStores, useBackdoor } from './property-stores.js';
import type { RedisBackdoor } from './redis-world.js';
import { KEYS, RepeatSession, type RepeatStep } from './repeat-session.js';

/** Set both to run a failed history again: the report of the failure names them. */
const { FC_SEED, FC_PATH, FC_RUNS = '60' } = process.env;

const call = fc.record({
  key: fc.constantFrom(...KEYS),
  policy: fc.constantFrom('latest', 'debounce', 'supersede', 'replace', 'existing', 'reject'),
  wait: fc.constantFrom(0, 0, 3, 8),
});

const step: fc.Arbitrary<RepeatStep> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constant('enqueue' as const),
      calls: fc.array(call, { minLength: 1, maxLength: 4 }),
      lost: fc.integer({ min: 0, max: 19 }).map((n) => n === 0),
    }),
  },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('take' as const), count: fc.integer({ min: 1, max: 4 }) }) },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant('settle' as const),
      index: fc.nat(5),
      how: fc.constantFrom('done', 'complete', 'retry', 'archive'),
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('move' as const), seconds: fc.integer({ min: 1, max: 9 }) }) },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant('operate' as const),
      index: fc.nat(30),
      action: fc.constantFrom('run', 'archive', 'delete'),
    }),
  },
) as fc.Arbitrary<RepeatStep>;

/** Sent again, a call recognises the last trigger that it gave to a task: several for one task may change the order of the queue. */
function onePerKey(one: RepeatStep): RepeatStep {
  if (one.do !== 'enqueue' || !one.lost) return one;
  return { ...one, calls: one.calls.filter(({ key }, at, all) => all.findIndex((other) => other.key === key) === at) };
}

/** Loses the reply of the next call that enqueues, once it is done. */
let loses = false;

function loseReplies(): void {
  const { run } = Scripts.prototype;
  vi.spyOn(Scripts.prototype, 'run').mockImplementation(async function (this: Scripts, purpose, name, ...rest) {
    const reply = await run.call(this, purpose, name, ...rest);
    if (!loses || !name.startsWith('enqueueUnique')) return reply;
    loses = false;
    throw new BrokerUnavailableError('the reply was lost');
  });
}

async function replay(backdoor: RedisBackdoor, steps: readonly RepeatStep[]): Promise<void> {
  const start = Math.floor(Date.now() / 1000) * 1000 + 300;
  const [here, there] = [new ManualClock(start), new ManualClock(start)];
  const onRedis = new RepeatSession(new Driver(await backdoor.world(here), here));
  const inMemory = new RepeatSession(new Driver(memoryWorld(there), there));
  try {
    for (const one of steps.map(onePerKey)) {
      loses = one.do === 'enqueue' && one.lost;
      const reply = await onRedis.play(one);
      const expected = await inMemory.play(one);
      if (!(one.do === 'enqueue' && one.lost)) expect(reply).toEqual(expected);
      expect(withoutLockExpiry(await onRedis.driver.world.dump())).toEqual(
        withoutLockExpiry(await inMemory.driver.world.dump()),
      );
    }
    await onRedis.drain();
    await inMemory.drain();
  } finally {
    await Promise.all([onRedis, inMemory].map(({ driver }) => driver.world.cleanup()));
  }
}

describe.each(redisStores(Number(FC_RUNS)))('memory and %s', (_, begin, runs) => {
  const backdoor = useBackdoor(begin);
  afterEach(() => vi.restoreAllMocks());

  it('do the same with the same task twice in any history, and lose no trigger', async () => {
    loseReplies();
    const seed = FC_SEED === undefined ? {} : { seed: Number(FC_SEED), path: FC_PATH };
    const histories = fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 40 }), (steps) =>
      replay(backdoor(), steps),
    );
    await fc.assert(histories, { numRuns: runs, ...seed });
  }, 120_000);
});
