import type { Redis } from 'ioredis';
import { expect } from 'vitest';
import type { Broker } from '../../lib/broker/broker.js';
import { BrokerUnavailableError, SkipRetry } from '../../lib/errors.js';
import type { TaskContext } from '../../lib/task/context.js';
import { defineSignal } from '../../lib/task/signal.js';
import { Driver } from '../contract/driver.js';
import { LinkSession } from '../contract/link-session.js';
import { requeueExpired } from '../contract/mortal.js';
import { it, type RedisDriver } from '../contract/redis-fixture.js';
import { type SagaHandlers, work } from '../contract/suite/saga-kills.js';

const QUEUES = ['default', 'other'];
const Approval = defineSignal<string>('approval');
const EFFECTS = ['capture', 'invoice', 'receipt', 'reserve', 'rows', 'ship'];
/** Writes that are lost. */
const LOST = 2;

/** A saga that waits in every way, and fails for good at its end. */
class Saga implements SagaHandlers {
  readonly effects: string[] = [];
  private fails = 1;

  async handle({ steps }: TaskContext): Promise<void> {
    const note = (what: string) => () => void this.effects.push(what);
    await steps.run('capture', note('capture'), { undo: note('undo capture') });
    await steps.sleep('nap', '1m');
    const invoice = ['invoice', 'invoice', { queue: 'other' }] as const;
    await steps.all({ invoice, receipt: ['invoice', 'receipt'] });
    const reserve = (): void => {
      if (this.fails-- > 0) throw new Error('busy');
      this.effects.push('reserve');
    };
    await steps.run('reserve', reserve, { retry: { max: 9, delay: '1m' } });
    await steps.waitFor('approved', Approval, { timeout: '1d' });
    await steps.each('rows', [1], note('rows'));
    await steps.run('ship', note('ship'));
    throw new SkipRetry('sold out');
  }

  invoice({ payload }: TaskContext): void {
    this.effects.push(JSON.parse(String(payload)) as string);
  }
}

/** Somebody approves again and again. */
async function play(driver: Driver, session: LinkSession, saga: Saga, rounds: number): Promise<void> {
  for (let round = 0; round < rounds; round++) {
    for (const queue of QUEUES) while (await work(driver, session, saga, queue, 1));
    driver.clock.advance(60_000);
    for (const queue of QUEUES) await driver.broker.maintenance.forward(queue);
    await driver.broker.checkpoints.signal('default', 'saga', Approval.name, Buffer.from('"anna"'));
  }
}

/** After `LOST` calls behind the `at`th, Redis is what it was after that one. */
class Loss {
  made = 0;
  private before: (readonly [key: string, bytes: Buffer])[] = [];
  private isStale = false;

  constructor(
    private readonly driver: RedisDriver,
    private readonly at: number,
  ) {}

  broker(): Broker {
    const { broker } = this.driver;
    const { links, consumer, checkpoints } = broker;
    const roles = { links: this.role(links, true), consumer: this.role(consumer), checkpoints: this.role(checkpoints) };
    return new Proxy(broker, { get: (from, name) => Reflect.get(roles, name) ?? Reflect.get(from, name) });
  }

  private role<T extends object>(target: T, isRelayed = false): T {
    return new Proxy(target, {
      get: (from, name) => {
        const method = Reflect.get(from, name) as (...args: unknown[]) => unknown;
        return async (...args: unknown[]) => {
          // What is in hand when the connection is lost is left to the keepers.
          if (isRelayed && this.isStale) throw new BrokerUnavailableError('Redis was away');
          const reply: unknown = await Reflect.apply(method, from, args);
          await this.onCall(isRelayed);
          return reply;
        };
      },
    });
  }

  private async onCall(isRelayed: boolean): Promise<void> {
    const { redis } = this.driver;
    this.made++;
    if (this.made === this.at) this.before = await dump(redis);
    if (this.made !== this.at + LOST) return;
    this.isStale = isRelayed;
    await redis.flushall();
    for (const [key, bytes] of this.before) await redis.restore(key, 0, bytes);
    await redis.sadd('asynq:queues', QUEUES); // as servers do
    await redis.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
    await expect.poll(() => this.isBack(), { interval: 5 }).toBe(true);
  }

  private async isBack(): Promise<boolean> {
    const { maintenance, consumer, links, checkpoints } = this.driver.broker;
    const asked = [
      maintenance.listExpiredLeases('default', 0, 1),
      consumer.exchange('default', { settle: [], take: 0 }),
      links.places(),
      checkpoints.read('default', 'none'),
    ];
    return (await Promise.allSettled(asked)).every(({ status }) => status === 'fulfilled');
  }
}

const dump = async (redis: Redis) =>
  Promise.all((await redis.keys('*')).map(async (key) => [key, (await redis.dumpBuffer(key))!] as const));

it(
  'a Redis that loses its last writes, at whatever call, leaves no task that waits for ever',
  { timeout: 120_000 },
  async ({ driver }) => {
    for (let at = 1; ; at++) {
      await driver.redis.flushall();
      await driver.redis.sadd('asynq:queues', QUEUES);
      const saga = new Saga();
      await driver.add({ id: 'saga', type: 'saga' });
      const loss = new Loss(driver, at);
      const losing = new Driver({ ...driver.world, broker: loss.broker() }, driver.clock);
      await play(losing, new LinkSession(losing), saga, 6).catch((error: unknown) => {
        if (!(error instanceof BrokerUnavailableError)) throw error;
      });
      if (loss.made < at + LOST) break;
      const session = new LinkSession(driver);
      for (let round = 0; round < 3; round++) {
        await requeueExpired(driver, QUEUES);
        await session.keep();
        await play(driver, session, saga, 6);
      }
      const { tasks, ...queue } = await driver.queue();
      expect([at, tasks['saga']?.state, tasks['saga']?.message.errorMsg]).toEqual([
        at,
        'archived',
        'sold out; undone: capture',
      ]);
      expect(queue).toMatchObject({ pending: [], scheduled: [], active: [], lease: [] });
      expect([Object.keys(tasks), (await driver.queue('other')).tasks]).toEqual([['saga'], {}]);
      expect([at, EFFECTS.filter((effect) => !saga.effects.includes(effect))]).toEqual([at, []]);
      expect(saga.effects.at(-1)).toBe('undo capture');
    }
  },
);
