import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ManualClock } from '../../lib/clock.js';
import { Server } from '../../lib/server/server.js';
import { request } from '../support/messages.js';
import { RedisFleet } from '../support/redis-fleet.js';

const SERVERS = 20;
const TASKS = 300;

describe('many idle servers', () => {
  let fleet: RedisFleet;
  /** Servers rest for some milliseconds, which must not depend on how fast this machine is. */
  const clock = new ManualClock();
  let onRun = (): void => {};

  beforeAll(async () => {
    fleet = await RedisFleet.start();
    for (let count = 0; count < SERVERS; count++) {
      const server = new Server({
        broker: fleet.makeBroker({ clock }),
        handlers: [{ pattern: 't', handle: () => onRun() }],
        options: { taskCheckInterval: '1h', delayedTaskCheckInterval: '1h' },
      });
      fleet.servers.push(server);
      await server.start();
    }
  });

  afterAll(() => fleet.stop());

  /** Calls of scripts so far. */
  async function scriptCalls(): Promise<number> {
    const info = await fleet.client.info('commandstats');
    const calls = (name: string): number => Number(new RegExp(`cmdstat_${name}:calls=(\\d+)`).exec(info)?.[1] ?? 0);
    return calls('evalsha') + calls('eval');
  }

  it('do not all claim at every task: those that come too late rest', async () => {
    const producer = fleet.makeBroker();
    const runOne = async (): Promise<void> => {
      const ran = new Promise<void>((resolve) => (onRun = resolve));
      await producer.producer.enqueue('default', [request({ type: 't' })]);
      await ran;
      clock.advance(1); // however long it has taken
    };
    await runOne();
    const before = await scriptCalls();
    for (let count = 0; count < TASKS; count++) await runOne();
    const perTask = ((await scriptCalls()) - before) / TASKS;
    // A task costs its enqueue, the exchange that takes it and the one that settles it; a stampede
    // would add one per server.
    expect(perTask).toBeGreaterThanOrEqual(2);
    expect(perTask).toBeLessThan(SERVERS / 2);
    console.log(`${SERVERS} idle servers: ${perTask.toFixed(1)} script calls per task`);
  });
});
