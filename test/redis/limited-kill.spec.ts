import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { expect, onTestFinished, vi } from 'vitest';
import { it, type RedisDriver } from '../contract/redis-fixture.js';
import { request } from '../support/messages.js';
import { compiled } from '../support/programs.js';

vi.setConfig({ testTimeout: 240_000 });

const MOST = 9;
const TASKS = 20_000;

async function startServer({ server }: RedisDriver): Promise<ChildProcess> {
  const program = await compiled(new URL('./limited-process.ts', import.meta.url));
  const child = spawn(process.execPath, [program, '127.0.0.1', `${server.port}`, `${MOST}`], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  await once(child.stdout!, 'data');
  return child;
}

/** So many attempts more have begun. */
async function progress({ redis }: RedisDriver, count: number): Promise<void> {
  const before = Number(await redis.get('oracle:begun'));
  await vi.waitFor(async () => expect(Number(await redis.get('oracle:begun'))).toBeGreaterThan(before + count), {
    timeout: 60_000, // what a killed server held is free after a lease
  });
}

it('a limit of the fleet is kept, and its slots are used, while servers are killed that keep them', async ({
  driver,
}) => {
  const { redis } = driver;
  const tasks = Array.from({ length: TASKS }, () => request());
  for (let first = 0; first < TASKS; first += 1_000) await driver.enqueue(tasks.slice(first, first + 1_000));
  const children = await Promise.all([1, 2, 3].map(() => startServer(driver)));
  for (let kills = 0; kills < 2; kills++) {
    await progress(driver, 500);
    const dead = children.shift()!;
    dead.kill('SIGKILL');
    await once(dead, 'exit');
    // What it held stays taken for a lease; what it ran runs no longer.
    for (const name of await redis.smembers('oracle:running')) {
      if (name.startsWith(`${dead.pid}:`)) await redis.srem('oracle:running', name);
    }
    await progress(driver, 300);
    children.push(await startServer(driver));
  }
  await progress(driver, 500);
  expect(Number(await redis.get('oracle:most'))).toBe(MOST);
});
