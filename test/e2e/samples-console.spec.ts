import { afterAll, describe, expect, it, vi } from 'vitest';
import { startRedis, type RedisProcess } from '../support/redis.js';
import { type Program, Programs, repository } from './program.js';

vi.setConfig({ testTimeout: 90_000 });

const QUEUES = ['shop:imports', 'shop:mail', 'shop:media', 'shop:payments', 'shop:search'];

interface ListedQueue {
  queue: string;
  active: number;
  completed: number;
  failed: number;
  groups: number;
  succeeded: number;
}

const addressOf = async (program: Program): Promise<string> => (await program.until(/busy at (\S+),/))[1]!;

async function get(address: string): Promise<string> {
  const response = await fetch(address);
  expect(response.status, address).toBe(200);
  return response.text();
}
const getJson = async <T>(address: string): Promise<T> => JSON.parse(await get(address)) as T;

/** Reads a stream up to a line that begins so; the rest is left. */
async function firstLine({ body }: Response, beginning: string): Promise<string | undefined> {
  let text = '';
  for await (const chunk of body!) {
    text += Buffer.from(chunk).toString();
    const line = text
      .split('\n')
      .slice(0, -1)
      .find((each) => each.startsWith(beginning));
    if (line) return line;
  }
  return undefined;
}

/** Resolves with the queues when each of them has done something. */
const untilBusy = (address: string): Promise<Map<string, ListedQueue>> =>
  vi.waitFor(
    async () => {
      const { queues } = await getJson<{ queues: ListedQueue[] }>(`${address}/asynq/api/queues`);
      const byName = new Map(queues.map((queue) => [queue.queue, queue]));
      expect([...byName.keys()].sort()).toEqual(QUEUES);
      expect(byName.get('shop:imports')!.active).toBeGreaterThan(0);
      expect(byName.get('shop:search')!.groups).toBeGreaterThan(0);
      for (const name of ['shop:mail', 'shop:media', 'shop:payments']) {
        expect(byName.get(name)!.completed, name).toBeGreaterThan(0);
      }
      expect(queues.some(({ failed }) => failed > 0)).toBe(true);
      return byName;
    },
    { interval: 200 },
  );

// The programs mostly wait, so the tests run side by side.
describe.concurrent('the console sample', () => {
  const programs = new Programs();
  let server: RedisProcess | undefined;
  afterAll(async () => {
    await programs.destroy();
    await server?.stop();
  });

  it('shows a busy shop by page, API, metrics, traces and events, without Redis, and ends with Ctrl-C', async () => {
    const program = programs.npm(['--silent', 'run', 'sample:console'], { PORT: '0' });
    const address = await addressOf(program);
    await program.until(/in memory\nthe console is at \S+\/asynq\/; Ctrl-C ends it/);
    const failures = await fetch(`${address}/failures`); // a stream that stays open
    await untilBusy(address);

    const page = await get(`${address}/asynq/`);
    expect(page).toContain('<title>');
    const [, script] = /<script[^>]+src="([^"]+\.js)"/.exec(page)!;
    expect(await get(new URL(script!, `${address}/asynq/`).href)).not.toBe('');

    const payments = `${address}/asynq/api/queues/shop:payments`;
    const { tasks } = await getJson<{ tasks: { payload: string; result: string }[] }>(`${payments}/completed_tasks`);
    expect(tasks[0]!.payload).toContain('"card":"[redacted]"');
    const media = `${address}/asynq/api/queues/shop:media`;
    const [image] = (await getJson<{ tasks: { id: string }[] }>(`${media}/completed_tasks`)).tasks;
    expect(await getJson(`${media}/tasks/${image!.id}`)).toMatchObject({
      payload_decoded: { decoder: 'msgpack', value: { width: 640 } },
    });

    const metrics = await get(`${address}/metrics`);
    expect(metrics).toMatch(/^asynq_queue_size\{queue="shop:payments"\} \d+$/m);
    await vi.waitFor(async () => {
      expect(await get(`${address}/traces`)).toMatch(
        /POST \/orders(?:.*\n)+? +process shop:payments order:charge .*completed/,
      );
    });
    expect(await firstLine(failures, 'data: ')).toMatch(/^data: \{"at":.*"outcome":"(retry|archived)"/);
    expect(await getJson<unknown[]>(`${address}/incidents`)).toBeInstanceOf(Array);
    expect((await fetch(`${address}/orders`, { method: 'POST' })).status).toBe(202);
    for (const [, link] of (await get(address)).matchAll(/href="([^"]+)"/g)) {
      if (link !== 'failures') await get(`${address}/${link}`);
    }
    const drained = await fetch(`${address}/health/drain?timeout=10ms`, { method: 'POST' });
    expect(drained.status).toBe(200);
    expect((await fetch(`${address}/health/ready`)).status).toBe(503);

    program.interrupt();
    await program.ended;
    expect(program.complaints).toBe('');
  });

  it('is on Redis with REDIS_URL, twice if you like', async () => {
    server = await startRedis();
    const start = (): Program =>
      programs.start(process.execPath, [`${repository}/sample/start.mjs`, '04-console/main'], {
        REDIS_URL: server!.url,
        PORT: '0',
      });
    const both = [start(), start()];
    const [first, second] = await Promise.all(both.map(addressOf));
    await untilBusy(first!);
    await vi.waitFor(async () => {
      const { servers } = await getJson<{ servers: object[] }>(`${second}/asynq/api/servers`);
      expect(servers).toHaveLength(2);
    });
    for (const program of both) program.interrupt();
    for (const { ended } of both) expect(await ended).toEqual({ code: 0, signal: null });
    expect(both.map(({ stderr }) => stderr).join('')).toBe('');
  });
});
