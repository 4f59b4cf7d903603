import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { expect, vi } from 'vitest';
import { Keyspace } from '../../lib/wire/keys.js';
import { it } from '../contract/redis-fixture.js';
import { compiled } from '../support/programs.js';

vi.setConfig({ testTimeout: 180_000 });

/** A planned second every 100 ms. */
const SPEED = 10;
const SKEWS = [0, 2_500, -2_500];
const KILLS = 8;

/** A process with a scheduler, and the planned times it says it has fired. */
class Replica {
  readonly fired: number[] = [];
  private readonly process: ChildProcess;
  private readonly ended: Promise<unknown>;
  errors = '';

  constructor(
    program: string,
    redis: { host: string; port: number },
    begin: number,
    readonly skew: number,
  ) {
    const args = [program, redis.host, redis.port, begin, SPEED, skew].map(String);
    this.process = spawn(process.execPath, args, { stdio: ['pipe', 'pipe', 'pipe'] });
    this.ended = once(this.process, 'close');
    createInterface({ input: this.process.stdout! }).on('line', (line) => this.fired.push(Number(line)));
    this.process.stderr!.on('data', (data: Buffer) => (this.errors += data.toString()));
  }

  /** As `kill -9`. */
  async kill(): Promise<void> {
    this.process.kill('SIGKILL');
    await this.ended;
  }
}

it('three processes, the busiest killed again and again, enqueue each planned time once', async ({ driver }) => {
  const { server, redis } = driver;
  const begin = Date.now();
  const program = await compiled(new URL('./scheduler-process.ts', import.meta.url));
  const start = (skew: number): Replica => new Replica(program, server, begin, skew);
  const key = new Keyspace().queue('default').schedule('tick');
  const lastFiredAt = async (): Promise<number> => Number(await redis.hget(key, 'mark'));
  let alive = SKEWS.map(start);
  const all = [...alive];
  try {
    await vi.waitFor(async () => expect(await redis.exists(key)).toBe(1), { timeout: 60_000 });
    // The start: each task so far stands for one second since then.
    const [first] = (await redis
      .multi()
      .hget(key, 'mark')
      .llen('asynq:{default}:pending')
      .exec()
      .then((replies) => [Number(replies![0]![1]) - Number(replies![1]![1])])) as [number];

    for (let kill = 0; kill < KILLS; kill++) {
      const before = new Map(alive.map((replica) => [replica, replica.fired.length]));
      const gain = (replica: Replica): number => replica.fired.length - before.get(replica)!;
      const reached = (await lastFiredAt()) + 15;
      await vi.waitFor(async () => expect(await lastFiredAt()).toBeGreaterThan(reached), {
        timeout: 60_000,
        interval: 7,
      });
      const busiest = alive.reduce((a, b) => (gain(b) > gain(a) ? b : a));
      expect(gain(busiest)).toBeGreaterThan(0);
      await busiest.kill();
      const successor = start(busiest.skew);
      all.push(successor);
      alive = [...alive.filter((replica) => replica !== busiest), successor];
    }
    await Promise.all(alive.map((replica) => replica.kill()));

    const planned = (await lastFiredAt()) - first;
    expect(planned).toBeGreaterThan(KILLS * 15);
    expect(await redis.llen('asynq:{default}:pending')).toBe(planned);
    expect((await redis.keys('asynq:{default}:t:*')).length).toBe(planned);
    const reported = all.flatMap(({ fired }) => fired);
    expect(new Set(reported).size).toBe(reported.length);
    // A process can die between a firing and its report, at most once each.
    expect(reported.length).toBeGreaterThanOrEqual(planned - all.length);
    expect(all.filter(({ fired }) => fired.length > 0).length).toBeGreaterThan(SKEWS.length);
    expect(all.map(({ errors }) => errors).join('')).toBe('');
  } finally {
    await Promise.all(all.map((replica) => replica.kill()));
  }
});
