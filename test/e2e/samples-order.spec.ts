import { afterAll, describe, expect, it, vi } from 'vitest';
import { type RedisProcess, startRedis } from '../support/redis.js';
import { type Program, Programs } from './program.js';

vi.setConfig({ testTimeout: 90_000 });

// The programs mostly wait, so the tests run side by side.
describe.concurrent('the order sample', () => {
  const programs = new Programs();
  let server: RedisProcess | undefined;
  afterAll(async () => {
    await programs.destroy();
    await server?.stop();
  });

  /** Runs the dead step again as the console does, and follows the order to its end. */
  async function followOrder(env: NodeJS.ProcessEnv): Promise<Program> {
    const program = programs.npm(['--silent', 'run', 'sample:order'], { PORT: '0', ...env });
    const [, run] = (await program.until(/the workflow (order:fulfil\/order-\d+) has started/))!;
    await program.until(/articles\.csv: 20000 articles are imported\n/); // a task of its own, which may run a moment later
    await program.until(/the workflow has failed: the printer has no paper/);
    const [, console] = (await program.until(/again at (\S+);/))!;
    expect(program.stdout).not.toContain('the order is closed');

    const step = `${run!.replace('/', '~')}~invoice`;
    const rerun = await fetch(`${console}api/queues/orders/archived_tasks/${step}:run`, {
      method: 'POST',
      headers: { 'X-Asynq-Console': '1' },
    });
    expect(rerun.status).toBe(204);

    await program.ended;
    return program;
  }

  const END =
    /the invoice is printed\n\S+: all is done, the order is closed\nthe workflow has succeeded: \{"closed":"order-\d+"\}\n$/;

  it('imports rows, and closes an order when its dead step was run again by hand, without Redis', async () => {
    const program = await followOrder({});
    expect(program.stdout).toMatch(END);
    expect(program.complaints).toBe('');
  });

  it('does the same on Redis', async () => {
    server = await startRedis();
    const program = await followOrder({ REDIS_URL: `redis://127.0.0.1:${server.port}` });
    expect(program.stdout).toMatch(END);
    expect(program.complaints).toBe('');
  });
});
