import type { InMemoryBroker } from 'nestjs-asynq/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { request } from '../../../support/messages.js';
import { startConsole, type TestConsole } from '../../console.js';

/* Requests meant to cause replies of many megabytes, and invalid numbers. */

describe('sizes of replies, attacked', () => {
  interface List {
    tasks: { id: string; error_message: string }[];
    scanned: number;
    next_cursor: string | null;
  }
  let web: TestConsole;
  let broker: InMemoryBroker;
  const TASKS = 4_000;

  beforeAll(async () => {
    web = await startConsole({ access: 'destroy' });
    broker = web.broker as InMemoryBroker;
    const payload = Buffer.from('"every one of them"');
    const headers = { long: 'x'.repeat(1_000) };
    const tasks = Array.from({ length: TASKS }, (_, index) =>
      request({ id: `t${index}`, type: 'x', payload, headers }),
    );
    await broker.producer.enqueue('long', tasks);
  });
  afterAll(() => web.close());

  it('a search that matches everything returns parts, and its cursor leads to all', async () => {
    const seen = new Set<string>();
    let [scanned, parts] = [0, 0];
    for (let cursor: string | null = ''; cursor !== null; parts++) {
      const { text } = await web.api('GET', `queues/long/pending_tasks?payload=every&scan=10000&cursor=${cursor}`);
      expect(text.length).toBeLessThan(2_500_000);
      const list = JSON.parse(text) as List;
      for (const { id } of list.tasks) seen.add(id);
      scanned += list.scanned;
      cursor = list.next_cursor;
    }
    expect([seen.size, scanned, parts]).toEqual([TASKS, TASKS, 4]);
  });

  it('lists show the beginning of a very long error', async () => {
    await broker.producer.enqueue('errors', [request({ id: 'x', type: 'x' })]);
    const { tasks } = await broker.consumer.exchange('errors', { settle: [], take: 1 });
    const { lease, message } = tasks[0]!;
    const errorMsg = `${'no '.repeat(400_000)}end`;
    const failed = { ...message, errorMsg, lastFailedAt: 1 };
    await broker.consumer.exchange('errors', { take: 0, settle: [{ kind: 'archive', lease, message: failed }] });
    const { tasks: listed } = await web.get<List>('queues/errors/archived_tasks?error=end');
    expect(listed[0]!.error_message).toBe(`${errorMsg.slice(0, 2_000)}…`);
    expect(await web.get('queues/errors/tasks/x')).toMatchObject({ error_message: errorMsg });
  });

  it.each(['size=-1', 'size=NaN', 'size=1e9', 'size=999999999', 'size=0x10', 'size[]=1', 'size=1&size=9', 'size=%00'])(
    'lists have 200 entries at most, whatever is asked for: %s',
    async (query) => {
      const { tasks } = await web.get<List>(`queues/long/pending_tasks?${query}`);
      expect([1, 20, 200]).toContain(tasks.length);
    },
  );

  it.each([
    ['page=999999999999999', 0],
    ['page=-1', 20],
    ['page=NaN', 20],
    ['page=1e3', 20],
    ['page=99999999999999999999', 20],
  ])('pages that are nowhere are empty, and what is no number is the first: %s', async (query, length) => {
    expect((await web.get<List>(`queues/long/pending_tasks?${query}`)).tasks).toHaveLength(length);
  });

  it('a queue with a forbidden name is shown like any other', async () => {
    await broker.producer.enqueue(' ', [request({ id: 'x', type: 'x' })]);
    const { stats } = await web.get<{ stats: Record<string, object[]> }>('queue_stats');
    expect([stats[' ']?.length, stats['long']?.length]).toEqual([90, 90]);
    const { queues } = await web.get<{ queues: object[] }>('live');
    expect(queues).toContainEqual(expect.objectContaining({ queue: ' ', pending: 1 }));
    expect(queues).toContainEqual(expect.objectContaining({ queue: 'long', pending: TASKS }));
  });

  it.each(['scan=-1', 'scan=1e9', 'scan=999999999', 'scan=NaN'])('no search scans more: %s', async (query) => {
    const { scanned } = await web.get<List>(`queues/long/pending_tasks?id=nobody&${query}`);
    expect(scanned).toBeLessThanOrEqual(TASKS);
  });

  it('a cursor has one form', async () => {
    const { next_cursor: cursor } = await web.get<List>('queues/long/pending_tasks');
    expect((await web.get<List>(`queues/long/pending_tasks?cursor=${cursor}`)).tasks[0]!.id).toBe('t20');
    for (const junk of ['!', '=', '%20', 'AA']) {
      expect(await web.api('GET', `queues/long/pending_tasks?cursor=${cursor}${junk}`)).toMatchObject({ status: 400 });
    }
  });

  it.each(['x', '%00', '[]', 'eyJhIjoxfQ', `${'9'.repeat(400)}`])(
    'cursors of no list are refused: %s',
    async (cursor) => {
      expect(await web.api('GET', `queues/long/pending_tasks?cursor=${cursor}`)).toMatchObject({ status: 400 });
      expect(await web.api('GET', `queues/long/retry_tasks?cursor=${cursor}`)).toMatchObject({ status: 400 });
    },
  );
});
