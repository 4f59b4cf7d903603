import type { RedisOptions } from 'ioredis';
import { describe, expect } from 'vitest';
import { AsynqInspector } from '../../lib/inspector/inspector.js';
import type { TaskState } from '../../lib/wire/states.js';
import { request } from '../support/messages.js';
import { runInProcess } from '../support/command-line.js';
import { requeueing } from './driver.js';
import { it, type RedisDriver } from './redis-fixture.js';

/** Scores that Redis accepts and no server writes. */
const SCORES = ['-inf', '-1e300', '-1.5', '1e18', '1e300', 'inf'] as const;
const SORTED = ['scheduled', 'retry', 'archived', 'completed', 'aggregating'] as const;

const setOf = ({ keys }: RedisDriver, state: (typeof SORTED)[number]): string =>
  state === 'aggregating' ? keys.group('g') : keys[state];

/** Six tasks with odd scores, and one with a normal score. */
async function damage(driver: RedisDriver, state: (typeof SORTED)[number]): Promise<{ good: string; bad: string[] }> {
  const bad: string[] = [];
  for (const _ of SCORES) bad.push(await driver.arrange(state));
  const good = await driver.arrange(state);
  for (const [index, score] of SCORES.entries()) await driver.redis.zadd(setOf(driver, state), score, bad[index]!);
  return { good, bad };
}

const groupOf = (state: TaskState) => (state === 'aggregating' ? { group: 'g' } : {});

describe.each(SORTED)('a score beyond every possible time, of a task in %s', (state) => {
  it('leaves every list complete, page by page, with times that a Date can hold', async ({ driver }) => {
    const inspector = new AsynqInspector(driver.broker);
    const { good, bad } = await damage(driver, state);
    const seen: string[] = [];
    let cursor: string | undefined;
    do {
      const page = await inspector.listTasks('default', state, { ...groupOf(state), size: 1, cursor });
      for (const task of page.tasks) {
        seen.push(task.id);
        for (const one of [task, await inspector.getTaskInfo('default', task.id)]) {
          expect(one?.nextProcessAt?.getTime()).not.toBeNaN();
          expect(one?.pendingSince?.getTime()).not.toBeNaN();
        }
      }
      expect(page.damaged).toEqual([]);
      cursor = page.cursor;
    } while (cursor !== undefined);
    expect(seen.sort()).toEqual([good, ...bad].sort());
    expect((await inspector.getQueueInfo('default'))[state]).toBe(7);
  });

  it('does not stop the command', async ({ driver }) => {
    const { good, bad } = await damage(driver, state);
    const { host, port } = driver.redis.options as RedisOptions;
    const group = state === 'aggregating' ? ['--group', 'g'] : [];
    for (const format of [[], ['--json']]) {
      const args = ['task', 'list', '-q', 'default', '-s', state, ...group, ...format, '-u', `${host}:${port}`];
      const { status, stdout, stderr } = await runInProcess(args);
      expect([status, stderr]).toEqual([0, '']);
      for (const id of [good, ...bad]) expect(stdout).toContain(id);
    }
  });

  it('does not stop actions on the tasks', async ({ driver }) => {
    const { good, bad } = await damage(driver, state);
    const ids = [good, ...bad];
    const all = ids.map(() => 'moved');
    if (state !== 'archived')
      expect(await driver.broker.administration.moveTasks('default', 'archive', ids)).toEqual(all);
    expect(await driver.broker.administration.rescheduleTasks('default', ids, driver.now + 60)).toEqual(all);
    expect(await driver.broker.administration.moveTasks('default', 'run', ids)).toEqual(all);
    expect(await driver.take(7)).toHaveLength(7);
  });
});

describe('a score beyond every possible time', () => {
  it('does not stop the forwarder, and is due when it lies in the past', async ({ driver }) => {
    for (const state of ['scheduled', 'retry'] as const) {
      await damage(driver, state);
      const { moved, nextDue } = await driver.broker.maintenance.forward('default');
      expect([moved, nextDue]).toEqual([3, driver.now + 60]);
      await driver.broker.administration.deleteQueue('default', { force: true });
    }
  });

  it('does not extend a lock for ever when its task is rescheduled', async ({ driver }) => {
    const lock = driver.keys.unique('t', undefined);
    const id = await driver.add({ uniqueKey: lock }, { uniqueTtl: 60, processAt: driver.now + 60 });
    for (const score of SCORES) {
      await driver.redis.zadd(driver.keys.scheduled, score, id);
      expect(await driver.broker.administration.rescheduleTasks('default', [id], driver.now + 60)).toEqual(['moved']);
    }
    expect(await driver.redis.ttl(lock)).toBeGreaterThan(0);
  });

  it("of a lease does not prevent the recovery of a dead server's tasks", async ({ driver }) => {
    const ids: string[] = [];
    for (const score of ['-inf', '-1e300', '-1.5', '5']) {
      const { lease } = await driver.takeNew();
      await driver.redis.zadd(driver.keys.lease, score, lease.id);
      ids.push(lease.id);
    }
    const { tasks } = await driver.broker.maintenance.listExpiredLeases('default', driver.now - 30, 10);
    expect(tasks.map(({ lease }) => lease.id)).toEqual(ids);
    expect(await driver.settle(...tasks.map(requeueing))).toEqual(ids.map(() => 'settled'));
  });

  it('in a group does not prevent its other tasks from being aggregated', async ({ driver }) => {
    const { good, bad } = await damage(driver, 'aggregating');
    const policy = { gracePeriod: 60, maxDelay: 0, maxSize: 0 };
    const first = await driver.broker.groups.claimDueSets('default', () => policy, 10);
    expect(first).toMatchObject({ sets: [], nextDue: driver.now + 60 });
    driver.clock.advance(60_000);
    const { sets } = await driver.broker.groups.claimDueSets('default', () => policy, 10);
    const read = await driver.broker.groups.readSet(sets[0]!);
    expect(read.tasks.map(({ id }) => id).sort()).toEqual([good, ...bad].sort());
  });

  it('among the notes of delayed groups does not stop a task from joining', async ({ driver }) => {
    for (const score of SCORES) {
      await driver.redis.zadd(driver.keys.delayedGroups, score, `1:${score}`);
      await driver.enqueue([request({ groupKey: 'later' }, { processAt: driver.now + 60 })]);
    }
    expect(await driver.redis.ttl(driver.keys.delayedGroups)).toBeGreaterThan(60);
  });
});
