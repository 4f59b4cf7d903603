import { join } from 'node:path';
import { Redis } from 'ioredis';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { RedisConnections } from '../../lib/broker/redis/connection/connections.js';
import { RedisBroker } from '../../lib/broker/redis/redis-broker.js';
import type { TaskState } from '../../lib/wire/states.js';
import { arrangeEveryState } from '../support/every-state.js';
import { request } from '../support/messages.js';
import { startRedis, type RedisProcess } from '../support/redis.js';
import { Screen } from '../support/screen.js';
import { repository } from './program.js';

const command = `${process.execPath} ${join(repository, 'dist', 'cli', 'main.js')} dash`;

describe('the dashboard in a terminal', () => {
  let redis: RedisProcess;
  let client: Redis;
  let broker: RedisBroker;
  let screen: Screen;
  let modes: string;

  beforeAll(async () => {
    redis = await startRedis();
    client = new Redis(redis.url).on('error', () => undefined); // one test kills the server
  });
  beforeEach(async () => {
    await client.flushall();
    broker = new RedisBroker(new RedisConnections({ host: redis.host, port: redis.port }));
    screen = await Screen.open({ env: { ASYNQ_URI: redis.url } });
    modes = await screen.modes();
  });
  afterEach(async () => {
    await screen.close();
    await broker.close();
  });
  afterAll(async () => {
    client.disconnect();
    await redis.stop();
  });

  const see = (...patterns: RegExp[]): Promise<string> =>
    screen.until((text) => patterns.every((pattern) => pattern.test(text)));
  const press = async (key: string, ...patterns: RegExp[]): Promise<string> => {
    await screen.press(key);
    return see(...patterns);
  };
  const stateOf = async (id: string): Promise<TaskState | undefined> =>
    (await broker.inspection.getTask('default', id))?.state;

  it('goes from queues to a task, acts, and restores the terminal', async () => {
    await arrangeEveryState(broker);
    await screen.start(`echo before; ${command} --refresh 1s`);
    await see(/^> default +running +7 /m);
    expect(await screen.text()).not.toContain('before');
    await press('Enter', /^> pending +1 /m, /latency/);
    for (const state of ['active', 'scheduled', 'retry']) await press('j', new RegExp(`^> ${state} +1 `, 'm'));
    await press('l', /^> retry +email:retry +in 5\ds +1\/25 +connect ECONNREFUSED/m);
    await press('R', /Task "retry" is pending now\./, /No retry tasks\./);
    expect(await stateOf('retry')).toBe('pending');

    await press('Escape', /^> retry +0$/m, /^ {2}pending +2 /m);
    await press('k', /^> scheduled/m);
    await press('Enter', /^> scheduled +email:scheduled +in 59m\d\ds/m);
    await press('Enter', /State +scheduled/, /"id": "scheduled"/);
    await press('A', /Task "scheduled" is archived\./, /State +archived/);
    expect(await stateOf('scheduled')).toBe('archived');

    await screen.press('h', 'h');
    await press('j', /^> retry/m);
    await press('j', /^> archived +2 /m);
    await press('Right', /^> scheduled/m, /^ {2}archived/m, /D delete/); // the newest first
    await press('D', /Delete this archived task\? scheduled/, /y yes +n no/);
    await press('n', /Nothing was done\./);
    expect(await stateOf('scheduled')).toBe('archived');
    await screen.press('Space', 'Space');
    await press('D', /Delete 2 archived tasks\?/);
    await press('y', /2 tasks are deleted\./, /No archived tasks\./);
    expect([await stateOf('archived'), await stateOf('scheduled')]).toEqual([undefined, undefined]);

    await press('P', /Queue "default" is paused\./, /default \(paused\)/);
    expect((await broker.inspection.describeQueue('default')).paused).toBe(true);
    await broker.producer.enqueue('other', [request({ queue: 'other' })]);
    await screen.press('Left', 'BSpace');
    await see(/^> default +paused +5 /m, /^ {2}other +running +1 /m);
    await press('?', /Keys/, /archive/);
    await press('q', /^> default/m);
    await screen.press('q');
    expect(await screen.finish()).toEqual({ output: 'before\n', status: 0 });
    expect(await screen.modes()).toBe(modes);
  });

  it('fits into a window of any size, and shows no escape sequence of tasks', async () => {
    const nasty = '\u001b[31mred\u001b[2J 日本語 \u202e';
    const tasks = Array.from({ length: 50 }, (_, i) =>
      request({
        id: `task-${i}`,
        type: `mail:${nasty}`,
        payload: Buffer.from(`{"text": "${'日本'.repeat(50)}${nasty}"}`),
      }),
    );
    await broker.producer.enqueue('default', tasks);
    await screen.start(command);
    await see(/^> default/m);
    await press('Enter', /^> pending +50 /m);
    await press('Enter', /^> task-0 +mail:\\x1b\[31mred\\x1b\[2J 日本語 \\u202e/m, /1 of 50/);
    await press('PPage', /^> task-0 /m);
    for (const [columns, rows] of [
      [40, 10],
      [200, 50],
      [20, 5],
      [80, 24],
    ] as const) {
      await screen.resize(columns, rows);
      const text = await screen.until((text) => {
        const lines = text.split('\n').filter((line) => /^. task-\d/.test(line));
        return lines.length === Math.min(50, rows - 4) && /^ \? help/m.test(text);
      });
      expect(text.split('\n').filter((line) => line !== '').length).toBe(rows);
      expect(text).toMatch(/^> task-0/m);
    }
    await press('G', /^> task-49 /m, /50 of 50/);
    await press('g', /^> task-0 /m, /1 of 50/);
    await press('Enter', /Payload \(/, /日本日本/, /nestjs-asynq › default › pending › task-0/);
    await press('C-c', /\[status 130 of \d\]/);
    expect(await screen.modes()).toBe(modes);
  });

  it('restores the terminal after every signal that ends it', async () => {
    await broker.producer.enqueue('default', [request()]);
    for (const [signal, status] of [
      ['SIGTERM', 143],
      ['SIGHUP', 129],
      ['SIGINT', 130],
    ] as const) {
      await screen.start(command);
      await see(/^> default/m);
      process.kill(await screen.program(), signal);
      expect((await screen.finish()).status, signal).toBe(status);
      expect(await screen.modes(), signal).toBe(modes);
    }
  });

  it('shows the last data with their age while Redis is unavailable, and recovers', async () => {
    await broker.producer.enqueue('default', [request()]);
    await screen.start(`${command} --refresh 1s`);
    await see(/^> default/m);
    await redis.kill();
    await see(/^> default +running +1 /m, /^! .*Redis/m, /as of \d+s ago/);
    await redis.start();
    const text = await see(/^> default +running +0 /m); // empty, and listed again by its producer
    expect(text).not.toMatch(/^!/m);
    await screen.press('q');
    expect((await screen.finish()).status).toBe(0);
  });

  it('uses no colors if they are turned off', async () => {
    await broker.producer.enqueue('default', [request()]);
    for (const [env, colored] of [
      ['', true],
      ['NO_COLOR=1', false],
    ] as const) {
      await screen.start(`${env} ${command}`);
      await see(/^> default/m);
      const styled = await screen.styledText();
      expect(['\u001b[7m', '\u001b[1m', '\u001b[2m'].some((code) => styled.includes(code))).toBe(colored);
      await screen.press('q');
      await screen.finish();
    }
  });

  it('refuses to run without a terminal', async () => {
    for (const redirection of ['< /dev/null', '| cat', '> /dev/null']) {
      const { output } = await screen.run(`(${command}; echo "status $?" >&2) ${redirection}`);
      expect(output.replaceAll('\n', ''), redirection).toMatch(/^error: dash needs a terminal.*status 2$/);
    }
  });
});
