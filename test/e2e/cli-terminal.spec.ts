import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { RedisConnections } from '../../lib/broker/redis/connection/connections.js';
import { RedisBroker } from '../../lib/broker/redis/redis-broker.js';
import { startProxy } from '../redis/proxy.js';
import { request } from '../support/messages.js';
import { startRedis, type RedisProcess } from '../support/redis.js';
import { Screen } from '../support/screen.js';
import { repository } from './program.js';

describe('the command line in a terminal', () => {
  let redis: RedisProcess;
  let broker: RedisBroker;
  let screen: Screen;
  const command = `${process.execPath} ${join(repository, 'dist', 'cli', 'main.js')}`;

  beforeAll(async () => {
    redis = await startRedis();
    broker = new RedisBroker(new RedisConnections({ host: redis.host, port: redis.port }));
  });
  beforeEach(async () => {
    screen = await Screen.open({ env: { ASYNQ_URI: redis.url } });
  });
  afterEach(() => screen.close());
  afterAll(async () => {
    await broker.close();
    await redis.stop();
  });

  const seed = async (queue: string, count: number, payload = '{}'): Promise<void> => {
    for (let from = 0; from < count; from += 500) {
      const size = Math.min(500, count - from);
      const tasks = Array.from({ length: size }, () => request({ queue, payload: Buffer.from(payload) }));
      await broker.producer.enqueue(queue, tasks);
    }
  };
  const pending = async (queue: string): Promise<number> => (await broker.inspection.describeQueue(queue)).pending;

  it('asks before it deletes, and obeys both no and yes', async () => {
    await seed('asked', 3);
    const line = `${command} task deleteall -q asked -s pending`;
    const question = 'Delete all pending tasks of queue "asked"? [y/N]';
    for (const [key, status, left] of [
      ['n', 1, 3],
      ['', 1, 3],
      ['y', 0, 0],
    ] as const) {
      await screen.start(line);
      await screen.until((text) => text.trimEnd().endsWith(question));
      await screen.type(key);
      await screen.press('Enter');
      const end = await screen.finish();
      expect(end).toEqual({
        status,
        output: expect.stringContaining(left ? 'Nothing was done.' : '3 tasks are deleted'),
      });
      expect(await pending('asked')).toBe(left);
    }
    await seed('asked', 1);
    for (const [key, status] of [
      ['C-c', 130],
      ['C-d', 1],
    ] as const) {
      await screen.start(line);
      await screen.until((text) => text.trimEnd().endsWith(question));
      await screen.press(key);
      expect((await screen.finish()).status).toBe(status);
      expect(await pending('asked')).toBe(1);
    }
  });

  it('shows progress, stops at Ctrl-C between two batches, and restores the terminal', async () => {
    const count = 12_000;
    await seed('bulk', count);
    const { port } = await startProxy(redis.port, 25); // however fast the machine, there is time to look
    await screen.start(`${command} task deleteall -q bulk -s pending --yes -u 127.0.0.1:${port}`);
    await screen.until((text) => /delete all pending tasks of queue.* \[=*-*\] [1-9]\d?% \d+\/12000/.test(text));
    await screen.press('C-c');
    const { output, status } = await screen.finish();
    expect(status).toBe(130);
    expect(output).not.toMatch(/error|at .*\.js|deleted/);
    const left = await pending('bulk');
    expect(left).toBeGreaterThan(0);
    expect(left).toBeLessThan(count);
    await screen.resize(60, 20);
    const rest = await screen.run(`${command} task archiveall -q bulk -s pending`);
    expect(rest).toMatchObject({ status: 0 });
    expect(rest.output).toMatch(
      new RegExp(`^archive all .*\\[=+\\] 100% ${left}/${left}\\n${left} tasks are archived\\n$`),
    );
    for (const line of rest.output.split('\n')) expect(line.length).toBeLessThanOrEqual(60);
    expect(await screen.run('stty -a | grep -o " -\\?echo "; echo typed')).toMatchObject({ output: ' echo\ntyped\n' });
  });

  it('fits its tables into a window of any size', async () => {
    await seed('wide', 2, `{"name":"${'日本'.repeat(60)}"}`);
    for (const columns of [100, 60, 30]) {
      await screen.resize(columns, 40);
      const { output, status } = await screen.run(`${command} task list -q wide -s pending`);
      expect(status).toBe(0);
      const lines = output.trimEnd().split('\n');
      if (columns === 30)
        expect(lines.slice(0, 3)).toEqual([
          expect.stringMatching(/^ID: +task-/),
          'Type:    test:task',
          expect.stringMatching(/^Payload: \{"name":"日本/),
        ]);
      else expect(lines).toHaveLength(3);
    }
    const piped = await screen.run(`${command} task list -q wide -s pending | wc -l`);
    expect(piped.output.trim()).toBe('3');
  });

  it('completes in bash', async () => {
    await seed('mail:low', 1);
    await screen.run(`nestjs-asynq() { ${command} "$@"; }; source <(nestjs-asynq completion bash)`);
    const expectCompleted = async (typed: string, whole: string): Promise<void> => {
      await screen.type(typed);
      // A completion gives up where Redis is slow to reply, as it is beside other tests: whoever types presses again.
      const completes = async (): Promise<void> => {
        await screen.press('Tab');
        await screen.until((text) => text.includes(whole), 5_000);
      };
      await vi.waitFor(completes, { timeout: 60_000, interval: 50 });
      await screen.press('C-u');
    };
    await expectCompleted('nestjs-asynq queue insp', 'nestjs-asynq queue inspect');
    await expectCompleted('nestjs-asynq queue inspect mail:l', 'nestjs-asynq queue inspect mail:low');
    await expectCompleted('nestjs-asynq task deleteall -q ma', 'nestjs-asynq task deleteall -q mail:low');
    await expectCompleted('nestjs-asynq task ls --state=sch', 'nestjs-asynq task ls --state=scheduled');
  });
});
