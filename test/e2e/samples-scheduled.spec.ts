import { Redis } from 'ioredis';
import { afterAll, describe, expect, it, vi } from 'vitest';
import { Keyspace } from '../../lib/wire/keys.js';
import { startRedis, type RedisProcess } from '../support/redis.js';
import { type Program, Programs, repository } from './program.js';

vi.setConfig({ testTimeout: 90_000 });

const MENTIONS: Record<string, string[]> = {
  ann: [
    'bob: is it out yet?',
    'cem: I hear it is',
    'bob: where?',
    'dee: does it do groups?',
    'dee: found it',
    'bob: and cron?',
    'cem: see the manual',
  ],
  bob: ['ann: it is', 'ann: on npm'],
  cem: ['ann: thanks for the tests'],
  dee: ['ann: welcome', 'bob: good morning'],
};

const REPORT = /report on today: (\d+) tasks done, 0 failures, (\d+) mentions wait/g;

/** The mentions of each mail, by reader. */
function mailsOf(...programs: Program[]): Record<string, string[][]> {
  const mails: Record<string, string[][]> = {};
  for (const { stdout } of programs) {
    for (const [, reader, lines] of stdout.matchAll(/^ +[\d.]+ s {2}mail to (\w+): (.*)$/gm)) {
      (mails[reader!] ??= []).push(lines!.split(' | '));
    }
  }
  return mails;
}

// The programs mostly wait, so the tests run side by side.
describe.concurrent('the scheduled sample', () => {
  const programs = new Programs();
  let server: RedisProcess | undefined;
  afterAll(async () => {
    await programs.destroy();
    await server?.stop();
  });

  it('mails every mention once, a few at a time, and reports meanwhile, without Redis', async () => {
    const program = programs.npm(['--silent', 'run', 'sample:scheduled']);
    expect(await program.ended, program.output).toEqual({ code: 0, signal: null });
    const mails = mailsOf(program);
    for (const [reader, mentions] of Object.entries(MENTIONS)) {
      expect(mails[reader]!.flat().sort()).toEqual(mentions.toSorted());
    }
    expect(Object.keys(mails).sort()).toEqual(['ann', 'bob', 'cem', 'dee']);
    const sizes = Object.values(mails).flatMap((each) => each.map(({ length }) => length));
    expect(Math.max(...sizes)).toBeLessThanOrEqual(5);
    expect(sizes.length).toBeLessThan(12);
    expect([...program.stdout.matchAll(REPORT)].length).toBeGreaterThanOrEqual(1);
    const [, next] = await program.until(/report:nightly \(0 2 \* \* \*, Europe\/Berlin\) comes next at (\S+)/);
    expect(new Date(next!).toLocaleTimeString('en-GB', { timeZone: 'Europe/Berlin' })).toBe('02:00:00');
    expect(program.complaints).toBe('');
  });

  it('shares the mails and reports among processes on one Redis, and goes on when one ends', async () => {
    server = await startRedis();
    const start = (...args: string[]): Program =>
      programs.start(process.execPath, [`${repository}/sample/start.mjs`, '03-scheduled/main', ...args], {
        REDIS_URL: server!.url,
      });
    const [stays, ends] = [start('--stay'), start()];
    expect(await ends.ended, ends.output).toEqual({ code: 0, signal: null });
    await stays.until(/goes on reporting/);
    const mails = mailsOf(stays, ends);
    for (const [reader, mentions] of Object.entries(MENTIONS)) {
      expect(mails[reader]!.flat().sort()).toEqual([...mentions, ...mentions].sort());
    }

    const before = [...stays.stdout.matchAll(REPORT)].length;
    await vi.waitFor(() => expect([...stays.stdout.matchAll(REPORT)].length).toBeGreaterThan(before));
    stays.interrupt();
    await stays.ended;
    expect(stays.complaints + ends.complaints).toBe('');
    await expectNothingLeft(server);
  });
});

/** Of tasks; what asynq keeps for statistics and periodic entries is something else. */
async function expectNothingLeft({ port }: RedisProcess): Promise<void> {
  const redis = new Redis(port);
  const { taskPrefix, groupPrefix } = new Keyspace().queue('forum');
  const keys = await redis.keys('*');
  redis.disconnect();
  expect(keys.filter((key) => key.startsWith(taskPrefix) || key.startsWith(groupPrefix))).toEqual([]);
}
