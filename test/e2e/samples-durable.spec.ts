import { Redis } from 'ioredis';
import { afterAll, describe, expect, it, vi } from 'vitest';
import { type RedisProcess, startRedis } from '../support/redis.js';
import { Programs } from './program.js';

vi.setConfig({ testTimeout: 90_000 });

// The programs mostly wait, so the tests run side by side.
describe.concurrent('the durable sample', () => {
  const programs = new Programs();
  let server: RedisProcess | undefined;
  afterAll(async () => {
    await programs.destroy();
    await server?.stop();
  });

  const start = (env: NodeJS.ProcessEnv = {}) =>
    programs.npm(['--silent', 'run', 'sample:durable'], { PORT: '0', ...env });
  const QUESTION = /order-\d+: brightness 50; do you approve it\?/;

  it('ships the order that is approved in the terminal, without Redis', async () => {
    const program = start();
    await program.until(QUESTION);
    program.type('perhaps');
    await program.until(/yes or no\?\n/);
    program.type('yes');
    expect(await program.ended).toMatchObject({ code: 0 });
    expect(program.stdout).toMatch(/order-1: it is shipped\norder-1 is fulfilled, approved by the terminal\n$/);
    expect(program.complaints).toBe('');
  });

  it('refunds the payment of one that is not', async () => {
    const program = start();
    await program.until(QUESTION);
    program.type('no');
    expect(await program.ended).toMatchObject({ code: 0 });
    expect(program.stdout).toContain('capture-of-order-1: the payment is refunded\n');
    expect(program.stdout).toMatch(/order-1 has failed: the terminal does not approve order-1; undone: capture\n$/);
  });

  it('goes on behind its last step on Redis after a kill -9 and a Ctrl-C, approved on the console', async () => {
    server = await startRedis();
    const env = { REDIS_URL: `redis://127.0.0.1:${server.port}`, ORDER: 'order-7' };
    const killed = start(env);
    await killed.until(/the payment is captured/);
    await killed.until(QUESTION);
    const redis = new Redis(server.port);
    // Killed before it sleeps, it would be recovered a minute later.
    await vi.waitFor(async () => expect(await redis.zcard('asynq:{default}:scheduled')).toBe(1));
    redis.disconnect();
    await killed.kill();
    const interrupted = start(env);
    await interrupted.until(/order-7 is there: its task is scheduled/);
    interrupted.interrupt();
    await interrupted.ended;
    const last = start(env);
    const [, console] = (await last.until(/the signal at (\S+);/))!;
    const signal = await fetch(`${console}api/queues/default/tasks/order:fulfil~once~order-7:signal`, {
      method: 'POST',
      headers: { 'X-Asynq-Console': '1', 'Content-Type': 'application/json' },
      body: JSON.stringify({ name: 'approval', payload: { approved: true, by: 'anna' } }),
    });
    expect(await signal.text()).toBe('');
    expect(await last.ended).toMatchObject({ code: 0 });
    expect(last.stdout).toMatch(/order-7 is fulfilled, approved by anna\n$/);
    expect(interrupted.stdout + last.stdout).not.toContain('the payment is captured');
  });
});
