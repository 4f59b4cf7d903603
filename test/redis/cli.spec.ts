import { describe, expect } from 'vitest';
import type { RedisDriver } from '../contract/redis-fixture.js';
import { withoutStyles } from '../support/command-line.js';
import { arrangeEveryState, arrangeHeld, arrangeWaiting } from '../support/every-state.js';
import { fairHeader, request } from '../support/messages.js';
import { it } from './cli-fixture.js';

const stored = (driver: RedisDriver, state: 'pending' | 'scheduled' | 'archived') =>
  driver.broker.listing
    .listTasks('default', { state, size: 100 })
    .then(({ tasks }) => tasks.map(({ message }) => message.id));

/** Valkey has the version of Redis that it is compatible with, too. */
async function serverOf({ redis }: RedisDriver): Promise<{ isValkey: boolean; version: string }> {
  const info = await redis.info('server');
  const valkey = /valkey_version:(\S+)/.exec(info)?.[1];
  return { isValkey: valkey !== undefined, version: valkey ?? /redis_version:(\S+)/.exec(info)![1]! };
}

describe('the command line', () => {
  describe('of a queue with a task in every state', () => {
    const arrange = (driver: RedisDriver): Promise<void> => arrangeEveryState(driver.broker);

    it.for([
      ['active', 'active     email:active  {"id":"active"}  no'],
      ['pending', 'pending  email:pending  {"id":"pending"}  now'],
      ['scheduled', 'scheduled  email:scheduled  {"id":"scheduled"}  in 1h0m0s'],
      [
        'retry',
        'retry  email:retry  {"id":"retry"}  in 1m0s     connect ECONNREFUSED  now                1         25',
      ],
      ['archived', 'archived  email:archived  {"id":"archived"}  now          connect ECONNREFUSED'],
      ['completed', 'completed  email:completed  {"id":"completed"}  now        {"ok":true}'],
      ['aggregating -g g', 'aggregating  email:aggregating  {"id":"aggregating"}  g'],
    ] as const)('lists tasks that are %s', async ([state, row], { driver, lines, json }) => {
      await arrange(driver);
      const [head, first, ...others] = await lines(`task ls -q default -s ${state}`);
      expect(head).toMatch(/^ID +Type +Payload/);
      expect(first?.split(/ {2,}/)).toEqual(row.split(/ {2,}/));
      expect(others).toEqual([]);
      const answer = await json(`task list -q default -s ${state}`);
      const id = state.split(' ')[0]!;
      expect(answer).toMatchObject({
        tasks: [
          { id, queue: 'default', type: `email:${id}`, state: id, payload: `{"id":"${id}"}`, payloadEncoding: 'utf8' },
        ],
        damaged: [],
        cursor: null,
      });
    });

    it('lists and shows a task that a limit holds back', async ({ driver, lines, json }) => {
      await arrangeHeld(driver.broker);
      await arrange(driver);
      driver.clock.advance(90_000);
      const [head, row] = await lines('task ls -q default -s held');
      expect(head?.split(/ {2,}/)).toEqual(['ID', 'Type', 'Payload', 'Held By', 'Held']);
      expect(row?.split(/ {2,}/)).toEqual(['held', 'email:held', '{"id":"held"}', 'mail', '1m30s ago']);
      expect((await lines('task ls -q default -s retry')).slice(1)).toEqual([expect.stringMatching(/^retry /)]);
      expect(await json('task inspect -q default -i held')).toMatchObject({ state: 'held', heldBy: 'mail' });
      expect((await lines('task inspect -q default -i held')).join()).toMatch(/Held by: +mail,Held since: +20/);
      expect((await lines('queue inspect default')).join()).toMatch(/Oldest held: +1m30s/);
      expect(await lines('task runall -q default -s held')).toEqual([expect.stringContaining('1')]);
      expect(await json('task inspect -q default -i held')).toMatchObject({ state: 'pending', heldBy: null });
    });

    it('lists and shows a task that waits for others', async ({ driver, lines, json }) => {
      await arrangeWaiting(driver.broker);
      const [head, row] = await lines('task ls -q default -s waiting');
      expect(head?.split(/ {2,}/)).toEqual(['ID', 'Type', 'Payload', 'Waits Until']);
      expect(row?.split(/ {2,}/)).toEqual(['waiting', 'email:waiting', '{"id":"waiting"}', 'in 2h0m0s']);
      const shown = await lines('task inspect -q default -i waiting');
      expect(shown.slice(-3)).toEqual([
        'Waits until: 2030-06-15T14:00:00Z (in 2h0m0s)',
        'Succeeded:   0 of 1 prerequisites',
        'Waits for:   payment:capture with key "order-7"',
      ]);
      expect(await json('task inspect -q default -i waiting')).toMatchObject({
        state: 'waiting',
        waits: { prerequisites: [{ state: 'waiting' }], cancelled: false },
      });
      const wait = { onFailure: 'cancel', onTimeout: 'archive', deadline: driver.now + 60 } as const;
      const prerequisites = [{ queue: 'default', id: 'waiting' }];
      await driver.broker.links.enqueue('default', [{ ...request({ id: 'next' }), wait: { ...wait, prerequisites } }]);
      await lines('queue pause default');
      const next = await lines('task inspect -q default -i next');
      expect(next.at(-1)).toBe('Waits for:   task waiting in queue "default", which is paused');
      expect(await lines('task run -q default -i waiting')).toEqual(['Task "waiting" of queue "default" is pending']);
    });

    it('shows what a handler has said', async ({ driver, lines, json }) => {
      const task = await driver.takeNew({ id: 'said' });
      const texts = Array.from({ length: 25 }, (_, n): [number, string] => [driver.clock.now(), `line ${n}\u001b[2J`]);
      await driver.broker.notes.write(task.lease, {
        progress: JSON.stringify([driver.clock.now(), 0.456, 'page 4']),
        fresh: true,
        pieces: [
          { kind: 'log', count: 25, text: JSON.stringify(texts), leftOut: 2 },
          { kind: 'chunk', count: 2, text: '[1,{"a":2}]', leftOut: 0 },
        ],
      });
      const shown = await lines('task inspect -q default -i said');
      const said = shown.slice(shown.findIndex((line) => line.startsWith('Progress:')));
      expect(said[0]).toMatch(/^Progress: +45 % page 4, 2030-06-15T12:00:00Z/);
      expect(said[1]).toMatch(/^Log: +\(7 lines before these\)$/);
      expect(said[2]).toMatch(/line 5/);
      expect(said.join()).not.toContain('\u001b');
      expect(said.at(-1)).toMatch(/^Chunks: +2, the last: \{"a":2\}$/);
      expect(await json('task inspect -q default -i said')).toMatchObject({
        progress: { fraction: 0.456, text: 'page 4' },
        log: { dropped: 2 },
        chunks: [1, { a: 2 }],
      });
    });

    it('explains why a task does not run', async ({ driver, lines, json }) => {
      await arrange(driver);
      expect(await lines('task explain -q default -i scheduled')).toEqual([
        'Task "scheduled" of queue "default" (email:scheduled) is scheduled:',
        '- It is scheduled for 2030-06-15T13:00:00Z (in 1h0m0s).',
        '- No server runs.',
      ]);
      expect(await json('task explain -q default -i pending')).toEqual({
        queue: 'default',
        id: 'pending',
        type: 'email:pending',
        state: 'pending',
        summary: 'No server runs.',
        reasons: [{ kind: 'notServed', servers: 0, text: 'No server runs.' }],
        timestamp: '2030-06-15T12:00:00.000Z',
      });
      expect(await lines('task explain -q defualt -i none')).toEqual([
        'Task "none" of queue "defualt":',
        expect.stringContaining('Did you mean "default"?'),
      ]);
    });

    it('counts and changes the tasks of a state that match', async ({ driver, lines }) => {
      for (const [id, type] of [
        ['m1', 'match'],
        ['m2', 'match'],
        ['m3', 'other'],
      ] as const) {
        await driver.add({ id, type, payload: Buffer.from(`{"order":{"id":${id === 'm2' ? '"7"' : '7'}}}`) });
      }
      const which = '-q default -s pending --type match --field order.id=7';
      expect(await lines(`task archiveall ${which} --dry-run`)).toEqual(['1 task would be archived']);
      expect(await lines(`task archiveall ${which}`)).toEqual(['1 task is archived']);
      expect(await stored(driver, 'archived')).toEqual(['m1']);
      expect(await lines('task deleteall -q default -s pending --type match --older-than 1h --dry-run')).toEqual([
        '0 tasks would be deleted',
      ]);
      driver.clock.advance(3_600_000);
      expect(await lines('task deleteall -q default -s pending --type match --older-than 1h -y')).toEqual([
        '1 task is deleted',
      ]);
      expect(await stored(driver, 'pending')).toEqual(['m3']);
      expect((await lines('task ls -q default -s pending --older-than 1h')).at(-1)).toMatch(/^m3 /);
    });

    it('cancels the running tasks that match', async ({ driver, lines }) => {
      const task = await driver.takeNew({ type: 'import:x' });
      await driver.takeNew({ type: 'other' });
      expect(await lines('task cancelall -q default --type import: --dry-run')).toEqual(['1 task would be cancelled']);
      expect(await lines('task cancelall -q default --type import: --reason late --outcome archive -y')).toEqual([
        'Asked to cancel 1 task',
      ]);
      const found = await driver.broker.cancellation.findCancellations([task.lease.id]);
      expect(found).toMatchObject([{ id: task.lease.id, outcome: 'archive', reason: 'late' }]);
    });

    it('lists locks and who holds them', async ({ driver, lines, json }) => {
      const uniqueKey = 'asynq:{default}:unique:email:key';
      await driver.add({ id: 'holder', type: 'email', uniqueKey }, { uniqueTtl: 3600 });
      const [head, row] = await lines('lock ls -q default');
      expect(head?.split(/ {2,}/)).toEqual(['Lock', 'Held By', 'Type', 'State', 'Ends']);
      expect(row).toMatch(/^email:key +holder +email +pending +in \d/);
      expect(await json('lock list -q default')).toEqual({
        locks: [
          {
            name: 'email:key',
            holder: { id: 'holder', state: 'pending', type: 'email' },
            expiresAt: expect.stringMatching(/Z$/) as string,
          },
        ],
        cursor: null,
      });
      await lines('queue rm --force default -y');
    });

    it('lists the keys of a fair queue, and tasks of a key', async ({ driver, run, lines, json }) => {
      driver.broker.fairQueues.add('default');
      const tasks = (key: string, share = {}) =>
        [1, 2].map((number) => request({ id: `${key}-${number}`, headers: fairHeader(key, share) }));
      const rate = { rate: 1, window: 3_600_000 };
      await driver.enqueue([
        ...tasks('acme', { concurrency: 1 }),
        ...tasks('zeta', rate),
        ...tasks('beta', { weight: 2 }),
      ]);
      await driver.take(9);
      await driver.enqueue([request({ id: 'beta-3', headers: fairHeader('beta') })]);
      const [head, ...rows] = await lines('queue keys default --sort name');
      expect(head?.split(/ {2,}/)).toEqual(['Key', 'Waiting', 'Running', 'Weight', 'Limits', 'Held By']);
      expect(rows[0]).toMatch(/^acme +1 +1 +1 +1 at a time +concurrency$/);
      expect(rows[1]).toMatch(/^beta +1 +2 +1$/);
      expect(rows[2]).toMatch(/^zeta +1 +1 +1 +1 per 1h0m0s +rate, in \d/);
      const held = (await json('queue keys default --held --search ac')) as object;
      expect(held).toEqual({
        keys: [
          {
            key: 'acme',
            waiting: 1,
            running: 1,
            weight: 1,
            concurrency: 1,
            rate: null,
            held: {
              by: ['concurrency'],
              until: expect.stringMatching(/Z$/) as string,
            },
          },
        ],
        cursor: null,
      });
      expect((await run('queue keys default --size 1')).stderr).toContain('There is more: --cursor ');
      expect((await run('queue keys default --search nobody')).stderr).toContain('No keys in queue "default"');
      expect((await lines('task ls -q default -s pending --key zeta')).at(-1)).toMatch(/^zeta-2 /);
      expect(await lines('task archiveall -q default -s pending --key acme --dry-run')).toEqual([
        '1 task would be archived',
      ]);
      expect((await lines('task deleteall -q default -s pending --key acme -y'))[0]).toBe('1 task is deleted');
      expect((await run('task ls -q default -s active --key acme')).stderr).toContain('pending tasks');
    });

    it('frees a lock of the task that is named', async ({ driver, run, lines }) => {
      const uniqueKey = 'asynq:{default}:unique:email:key';
      await driver.add({ id: 'holder', type: 'email', uniqueKey }, { uniqueTtl: 3600 });
      const asked = await run('lock release -q default --holder holder email:key');
      expect([asked.status, asked.stderr]).toEqual([
        2,
        expect.stringContaining(
          'free the lock email:key of queue "default", which task holder (email, pending) holds; add --yes',
        ),
      ]);
      const other = await run('lock release -q default --holder other email:key -y');
      expect([other.status, other.stderr]).toEqual([
        1,
        expect.stringContaining('task other does not hold the lock email:key of queue "default"'),
      ]);
      expect(Object.keys((await driver.queue()).locks)).toEqual([uniqueKey]);
      expect(await lines('lock release -q default --holder holder email:key -y')).toEqual(['1 lock freed']);
      expect(await driver.queue()).toMatchObject({ locks: {}, pending: ['holder'] });
      await lines('queue rm --force default -y');
    });

    it('shows a task', async ({ driver, run, lines, json }) => {
      await arrange(driver);
      expect(await lines('task inspect -q default -i retry')).toEqual([
        'Queue:             default',
        'ID:                retry',
        'Type:              email:retry',
        'State:             retry',
        'Retried:           1/25',
        'Payload:           {"id":"retry"}',
        'Next process time: 2030-06-15T12:01:00Z (in 1m0s)',
        'Timeout:           30m0s',
        'Last failure:      2030-06-15T12:00:00Z (now)',
        'Last error:        connect ECONNREFUSED',
      ]);
      expect(await json('task inspect -q default -i completed')).toEqual({
        id: 'completed',
        queue: 'default',
        type: 'email:completed',
        state: 'completed',
        payload: '{"id":"completed"}',
        payloadEncoding: 'utf8',
        headers: {},
        group: '',
        maxRetry: 25,
        retried: 0,
        lastErr: '',
        lastFailedAt: null,
        timeout: 1_800_000,
        deadline: null,
        expiresAt: null,
        nextProcessAt: null,
        pendingSince: null,
        enqueuedAt: null,
        heldBy: null,
        heldSince: null,
        isOrphaned: false,
        retention: 3_600_000,
        completedAt: '2030-06-15T12:00:00.000Z',
        result: '{"ok":true}',
        resultEncoding: 'utf8',
        crashes: 0,
        lastCrashes: [],
      });
      expect(await run('task inspect -q default -i nobody')).toEqual({
        status: 1,
        stdout: '',
        stderr:
          'error: task not found: id="nobody", queue="default"; it has succeeded and had no retention, or was deleted, ' +
          'or the id or the queue is wrong\n',
      });
    });

    it('names an unknown queue and the nearest one', async ({ driver, run }) => {
      await arrange(driver);
      const stderr = 'error: queue not found: queue="defualt"; did you mean "default"?\n';
      for (const line of [
        'task inspect -q defualt -i retry',
        'task run -q defualt -i retry',
        'task ls -q defualt -s pending',
        'task archiveall -q defualt -s pending',
        'task ls -q defualt -s aggregating',
        'group ls -q defualt',
        'queue inspect defualt',
        'queue history defualt',
        'queue rm defualt',
      ]) {
        expect({ line, ...(await run(line)) }).toEqual({ line, status: 1, stdout: '', stderr });
      }
      expect(await run('queue pause defualt')).toEqual({
        status: 0,
        stdout: 'Queue "defualt" is paused\n',
        stderr: 'note: queue "defualt" has never had a task; did you mean "default"?\n',
      });
    });

    it('names the flag and the groups if the group is missing', async ({ driver, run }) => {
      await arrange(driver);
      for (let index = 10; index < 20; index++) {
        await driver.enqueue([request({ groupKey: `mail:${index}` })]);
      }
      const named = Array.from({ length: 9 }, (_, index) => `, "mail:${10 + index}" (1 task)`).join('');
      const stderr =
        'error: aggregating tasks are kept by group: give --group; ' +
        `queue "default" has "g" (1 task)${named} and 1 more, see \`nestjs-asynq group list\`\n`;
      for (const command of ['ls', 'archiveall', 'runall', 'deleteall --yes', 'ls --type email:']) {
        const line = `task ${command} -q default -s aggregating`;
        expect({ line, ...(await run(line)) }).toEqual({ line, status: 2, stdout: '', stderr });
      }
      await driver.broker.producer.enqueue('other', [request({ queue: 'other' })]);
      expect(await run('task ls -q other -s aggregating')).toMatchObject({
        status: 2,
        stderr: expect.stringContaining('give --group; queue "other" has no groups with waiting tasks'),
      });
      expect(await run('task ls -q default -s pending -g g')).toMatchObject({
        status: 2,
        stderr: 'error: --group is for tasks that are aggregating, not for those that are pending\n',
      });
    });

    it('shows the figures of a queue, and of all queues', async ({ driver, lines, json }) => {
      await arrange(driver);
      const numbers = [
        'active  pending  aggregating  scheduled  retry  archived  completed  waiting  held',
        '     1        1            1          1      1         1          1        0     0',
      ];
      const day = ['Today (2030-06-15 UTC)', 'processed  failed  error rate', '        3       2  66.67%'];
      const inspected = await lines('queue inspect default');
      expect(inspected.slice(0, 5)).toEqual([
        'Queue',
        'Name:         default',
        'Size:         7',
        'Groups:       1',
        'Paused:       false',
      ]);
      expect(inspected.slice(7)).toEqual(['', 'Tasks by state', ...numbers, '', ...day]);
      const { version } = await serverOf(driver);
      const stats = await lines('stats');
      expect(stats.slice(0, 11)).toEqual([
        'Tasks by state',
        ...numbers,
        '',
        'Tasks by queue',
        'queue    size',
        'default     7',
        '',
        ...day,
      ]);
      expect(stats.slice(12)).toEqual([
        'Redis',
        expect.stringMatching(/^version +uptime +connections/),
        expect.stringMatching(new RegExp(`^${version.replaceAll('.', '\\.')} +0 days +\\d+ +\\S+B +\\S+B$`)),
      ]);
      expect(await lines('queue history default -x 2')).toEqual([
        'Queue default',
        'date (UTC)  processed  failed  error rate',
        '2030-06-15          3       2  66.67%',
        '2030-06-14          0       0  N/A',
      ]);
      expect(await json('queue history default -x 1')).toEqual([
        { queue: 'default', date: '2030-06-15', processed: 3, failed: 2 },
      ]);
      expect(await json('queue inspect default')).toMatchObject([
        { queue: 'default', size: 7, latency: 0, paused: false, timestamp: '2030-06-15T12:00:00.000Z' },
      ]);
    });

    it("prints `stats --json` in asynq's form", async ({ driver, json }) => {
      await arrange(driver);
      await driver.broker.administration.pauseQueue('default');
      driver.clock.advance(1500);
      const timestamp = '2030-06-15T12:00:01.500Z';
      const counts = { active: 1, pending: 1, aggregating: 1, scheduled: 1, retry: 1, archived: 1, completed: 1 };
      const { isValkey } = await serverOf(driver);
      const answer = await json('stats');
      expect(answer).toEqual({
        aggregate: { ...counts, processed: 3, failed: 2, timestamp },
        queues: [
          {
            Queue: 'default',
            MemoryUsage: expect.any(Number),
            Latency: 1_500_000_000,
            Size: 7,
            Groups: 1,
            Pending: 1,
            Active: 1,
            Scheduled: 1,
            Retry: 1,
            Archived: 1,
            Completed: 1,
            Aggregating: 1,
            Processed: 3,
            Failed: 2,
            ProcessedTotal: 3,
            FailedTotal: 2,
            Paused: true,
            Timestamp: timestamp,
          },
        ],
        redis: expect.objectContaining({
          [isValkey ? 'server_mode' : 'redis_mode']: 'standalone',
          uptime_in_days: '0',
        }),
      });
      await driver.redis.flushall();
      expect(await json('stats')).toMatchObject({ aggregate: { active: 0 }, queues: null });
    });

    it('runs, archives and deletes one task, and replaces a payload', async ({ driver, run, lines }) => {
      await arrange(driver);
      expect(await lines('task run -q default -i archived')).toEqual(['Task "archived" of queue "default" is pending']);
      expect(await lines('task archive -q default -i retry')).toEqual(['Task "retry" of queue "default" is archived']);
      expect(await lines('task rm -q default -i completed')).toEqual([
        'Task "completed" of queue "default" is deleted',
      ]);
      expect(await lines(['task', 'update-payload', '-q', 'default', '-i', 'scheduled', '-l', '{"é":1}'])).toHaveLength(
        1,
      );
      expect(await lines('task reschedule -q default -i scheduled --process_in 2h')).toEqual([
        'Task "scheduled" of queue "default" has its new time',
      ]);
      expect((await run('task reschedule -q default -i scheduled')).stderr).toBe(
        'error: the time is missing; give --process_at or --process_in\n',
      );
      expect([await stored(driver, 'pending'), await stored(driver, 'archived')]).toEqual([
        ['pending', 'archived'],
        ['retry'],
      ]);
      const task = await driver.broker.inspection.getTask('default', 'scheduled');
      expect(task?.message.payload.toString()).toBe('{"é":1}');
      expect(await run('task archive -q default -i active')).toEqual({
        status: 1,
        stdout: '',
        stderr: 'error: cannot archive task in active state. use cancelProcessing instead.\n',
      });
      expect(await run('task run -q nowhere -i x')).toMatchObject({
        status: 1,
        stderr: expect.stringContaining('queue not found: queue="nowhere"'),
      });
    });

    it('acts on all tasks of a state', async ({ driver, run, lines }) => {
      await arrange(driver);
      expect(await lines('task runall -q default -s scheduled')).toEqual(['1 task is pending now']);
      expect(await lines('task archiveall -q default -s pending')).toEqual(['2 tasks are archived']);
      expect(await lines('task runall -q default -s aggregating -g g')).toEqual(['1 task is pending now']);
      expect(await lines('task deleteall -q default -s archived --yes')).toEqual(['3 tasks are deleted']);
      expect(await lines('task deleteall -q default -s retry -y')).toEqual(['1 task is deleted']);
      expect(await stored(driver, 'pending')).toEqual(['aggregating']);
      expect(await run('task runall -q default -s aggregating')).toMatchObject({
        status: 2,
        stderr: expect.stringContaining('give --group'),
      });
    });

    it.for([
      ['task deleteall -q default -s archived', 'delete all archived tasks of queue "default"'],
      ['task deleteall -q default -s aggregating -g g', 'delete all aggregating tasks of group "g" in queue "default"'],
      ['queue remove default --force', 'remove queue "default" with 7 tasks'],
    ] as const)('does not run `%s` without a yes', async ([line, what], { driver, run }) => {
      await arrange(driver);
      const before = await driver.contents();
      const refused = await run(line);
      expect(refused).toEqual({
        status: 2,
        stdout: '',
        stderr: `error: there is no terminal to ask whether to ${what}; add --yes to do it without asking\n`,
      });
      const asked = `${what[0]!.toUpperCase()}${what.slice(1)}? [y/N] `;
      for (const input of ['n\n', '\n', 'yesterday\n']) {
        expect(await run(line, { columns: 80, input })).toEqual({
          status: 1,
          stdout: '',
          stderr: `${asked}Nothing was done.\n`,
        });
      }
      expect(await run(line, { columns: 80, input: '' })).toMatchObject({
        status: 1,
        stderr: `${asked}\nNothing was done.\n`,
      });
      expect(await driver.contents()).toEqual(before);
    });

    it('runs it after a yes', async ({ driver, run }) => {
      await arrange(driver);
      const deleted = await run('task deleteall -q default -s archived', { columns: 80, input: 'Y\n' });
      expect(deleted).toMatchObject({ status: 0, stdout: '1 task is deleted\n' });
      expect(await stored(driver, 'archived')).toEqual([]);
    });

    it('stops a deletion between two batches', async ({ driver, run }) => {
      await arrange(driver);
      const stopped = await run('task deleteall -q default -s archived --yes', { interruption: AbortSignal.abort() });
      expect(stopped).toEqual({ status: 130, stdout: '', stderr: '' });
      expect(await stored(driver, 'archived')).toEqual(['archived']);
    });
  });

  it('lists by page, by cursor and by search text', async ({ driver, run, json }) => {
    const ids = ['a', 'b', 'c', 'd', 'e'];
    await driver.enqueue(ids.map((id) => request({ id, type: id < 'c' ? 'mail' : 'push' })));
    const listed = async (more: string): Promise<[string[], string | undefined]> => {
      const { status, stdout, stderr } = await run(`task list -q default -s pending ${more}`);
      expect(status).toBe(0);
      const rows = stdout.split('\n').slice(1, -1);
      return [rows.map((row) => row.split(' ')[0]!), /^There is more: --cursor (\S+)\n$/.exec(stderr)?.[1]];
    };
    const [first, cursor] = await listed('--size 2');
    expect(first).toEqual(['a', 'b']);
    await driver.broker.administration.moveTasks('default', 'delete', ['a']);
    expect(await listed(`--size 9 --cursor ${cursor}`)).toEqual([['c', 'd', 'e'], undefined]);
    expect((await listed('--size 2 --page 2'))[0]).toEqual(['d', 'e']);
    expect((await listed('--type push'))[0]).toEqual(['c', 'd', 'e']);
    const [found, next] = await listed('--type push --scan 2');
    expect(found).toEqual(['c']);
    expect((await listed(`--type push --cursor ${next}`))[0]).toEqual(['d', 'e']);
    expect(await json('task list -q default -s pending --id d')).toMatchObject({
      tasks: [{ id: 'd' }],
      scanned: 4,
      cursor: null,
    });
    expect(await run('task list -q default -s pending --error boom')).toEqual({
      status: 0,
      stdout: '',
      stderr: 'None of the 4 tasks matches\n',
    });
    expect(await run('task list -q default -s pending --cursor nonsense')).toMatchObject({
      status: 2,
      stderr: expect.stringContaining('"nonsense" is not a cursor'),
    });
    expect(await run('task list -q default -s retry')).toEqual({
      status: 0,
      stdout: '',
      stderr: 'No retry tasks in queue "default"\n',
    });
  });

  it('by default lists ended tasks newest first, and others in the order in which they run', async ({
    driver,
    run,
  }) => {
    const { broker, clock } = driver;
    for (const id of ['a', 'b', 'c']) {
      await broker.producer.enqueue('default', [request({ id })]);
      await broker.administration.moveTasks('default', 'archive', [id]);
      await broker.producer.enqueue('default', [request({ id: `${id}-later` }, { processAt: driver.now + 60 })]);
      clock.advance(1000);
    }
    const listed = async (more: string) => {
      const { status, stdout, stderr } = await run(`task list -q default ${more}`);
      expect(status).toBe(0);
      const ids = stdout.split('\n').slice(1, -1).map((row) => row.split(' ')[0]!); // oxfmt-ignore
      return [ids, /--cursor (\S+)/.exec(stderr)?.[1]] as const;
    };
    const [newest, cursor] = await listed('-s archived --size 2');
    expect(newest).toEqual(['c', 'b']);
    expect((await listed(`-s archived --cursor ${cursor}`))[0]).toEqual(['a']);
    expect((await listed('-s archived --order oldest'))[0]).toEqual(['a', 'b', 'c']);
    expect((await listed('-s archived --page 2 --size 2'))[0]).toEqual(['a']);
    expect((await listed('-s scheduled'))[0]).toEqual(['a-later', 'b-later', 'c-later']);
    expect((await listed('-s scheduled --order newest'))[0]).toEqual(['c-later', 'b-later', 'a-later']);
    expect(await run('task list -q default -s pending --order newest')).toMatchObject({
      status: 2,
      stderr: expect.stringContaining('in their own order only'),
    });
  });

  it('shows since when a task is pending', async ({ driver, lines }) => {
    await driver.enqueue([request({ id: 'late' })]);
    driver.clock.advance(200_000);
    expect(await lines('task inspect -q default -i late')).toContain('Pending since: 2030-06-15T12:00:00Z (3m20s ago)');
    expect((await lines('task list -q default -s pending'))[1]).toMatch(/3m20s ago$/);
  });

  it('escapes all text from Redis', async ({ driver, run }) => {
    const evil = '\u001b[2J\u202e\u009b31mx\n';
    const task = request({
      id: evil,
      type: evil,
      queue: evil,
      payload: Buffer.from(evil),
      headers: { [evil]: evil },
      groupKey: evil,
    });
    await driver.broker.producer.enqueue(evil, [task]);
    await driver.broker.producer.enqueue(evil, [
      request({ id: 'wide', queue: evil, payload: Buffer.from('日本'.repeat(50)), type: 'x' }),
    ]);
    const outputs = [
      await run('queue list'),
      await run(['queue', 'inspect', evil, 'nowhere\u001b[2J']),
      await run('stats', { columns: 60 }),
      await run(['group', 'list', '-q', evil]),
      await run(['task', 'list', '-q', evil, '-s', 'aggregating', '-g', evil], { columns: 60 }),
      await run(['task', 'list', '-q', evil, '-s', 'pending'], { columns: 60, env: { NO_COLOR: '1' } }),
      await run(['task', 'inspect', '-q', evil, '-i', evil]),
      await run(['task', 'inspect', '-q', evil, '-i', evil, '--json']),
      await run(['task', 'run', '-q', evil, '-i', evil]),
      await run(['task', 'run', '-q', evil, '-i', `${evil}!`]),
      await run(['queue', 'pause', evil]),
      await run(['queue', 'remove', evil, '--force'], { columns: 80, input: 'n\n' }),
    ];
    for (const { stdout, stderr } of outputs) {
      const text = `${stdout}${stderr}`.replaceAll('\u001b[1m', '').replaceAll('\u001b[22m', ''); // our own bold
      expect(text.replaceAll('\n', '')).not.toMatch(/[\p{Cc}\p{Cf}]/u);
      expect(text).toMatch(/\\(x1b|u001b)\[2J|日本/);
    }
    const [head, wide] = outputs[5]!.stdout.split('\n');
    expect(head).toMatch(/^ID    Type  Payload {20,}Pending$/);
    expect(wide).toBe(`wide  x     ${'日本'.repeat(9)}日…  now`);
    expect(outputs[2]!.stdout).toContain('\u001b[1m');
  });

  it('pauses and resumes queues, and reports each failure', async ({ driver, run, lines, json }) => {
    await driver.broker.producer.enqueue('a', [request({ queue: 'a' })]);
    expect(await lines('queue ls')).toEqual(['a']);
    expect(await json('queue ls')).toEqual([{ queue: 'a', slot: null, nodes: null }]);
    expect(await run('queue pause a some-other')).toEqual({
      status: 0,
      stdout: 'Queue "a" is paused\nQueue "some-other" is paused\n',
      stderr: 'note: queue "some-other" has never had a task\n',
    });
    expect(await run('queue pause a b')).toEqual({
      status: 1,
      stdout: 'Queue "b" is paused\n',
      stderr: 'error: queue "a" is already paused\nnote: queue "b" has never had a task; did you mean "a"?\n',
    });
    expect(await lines('queue unpause a b some-other')).toHaveLength(3);
    expect(await run('queue resume a')).toEqual({ status: 1, stdout: '', stderr: 'error: queue "a" is not paused\n' });
    expect(await run('queue inspect b a')).toMatchObject({
      status: 1,
      stderr: expect.stringMatching(/^error: queue not found: queue="b"/),
      stdout: expect.stringContaining('Name:         a'),
    });
    expect(await run('queue rm a')).toMatchObject({
      status: 1,
      stderr: expect.stringMatching(/^error: queue is not empty: .*; --force deletes its tasks, too\n$/),
    });
    expect(await lines('queue rm a --force --yes')).toEqual(['Queue "a" is removed']);
    expect(await run('queue rm a -fy')).toMatchObject({
      status: 1,
      stderr: expect.stringContaining('queue not found'),
    });
    expect(await driver.redis.keys('*')).toEqual([]);
  });

  it('reports a value that the inspector refuses once, with status 2', async ({ run }) => {
    const { status, stderr } = await run('queue history a b -x 92');
    expect([status, stderr]).toEqual([2, 'error: days must be a whole number from 1 to 91, not 92\n']);
    expect(await run('task list -q a -s pending --size 1001')).toMatchObject({ status: 2 });
    expect(await run(['queue', 'inspect', ' '])).toMatchObject({
      status: 2,
      stderr: expect.stringContaining('queue name'),
    });
  });

  it('shows the progress of the removal of a queue', async ({ driver, run }) => {
    await arrangeEveryState(driver.broker);
    const [lease] = (await driver.broker.maintenance.listExpiredLeases('default', driver.now + 100, 1)).tasks;
    await driver.broker.consumer.exchange('default', { settle: [{ kind: 'requeue', lease: lease!.lease }], take: 0 });
    const { status, stdout, stderr } = await run('queue rm default -fy', { columns: 80 });
    expect([status, stdout]).toEqual([0, 'Queue "default" is removed\n']);
    expect(withoutStyles(stderr)).toMatch(/remove queue "default" \[=+\] 100% 7\/7/);
  });

  it('enqueues with exactly the given options', async ({ driver, run, lines, json }) => {
    const payload = '{"é":"日本"} \\n';
    const [plain] = await lines(['task', 'enqueue', '-t', 'mail', '-l', payload]);
    const [, id] = /^Enqueued task: id="([0-9a-f-]{36})" queue="default" state=pending$/.exec(plain!)!;
    expect((await driver.broker.inspection.getTask('default', id!))?.message).toMatchObject({
      type: 'mail',
      payload: Buffer.from(payload),
      maxRetry: 25,
      timeout: 1800,
      deadline: 0,
      retention: 0,
      uniqueKey: '',
    });
    expect(await lines('task enqueue -t mail -l --tls=true --id flag')).toHaveLength(1);
    expect((await driver.broker.inspection.getTask('default', 'flag'))?.message.payload.toString()).toBe('--tls=true');
    const all =
      '--retry 3 --queue low --id x --timeout 90s --deadline 2031-01-01T00:00:00Z --unique 1h --process_in 10m --retention 24h';
    expect(await lines(`task enqueue -t mail -l {} ${all}`)).toEqual([
      'Enqueued task: id="x" queue="low" state=scheduled',
    ]);
    const task = await driver.broker.inspection.getTask('low', 'x');
    expect(task?.message).toMatchObject({
      maxRetry: 3,
      timeout: 90,
      deadline: Date.UTC(2031, 0) / 1000,
      retention: 86_400,
    });
    expect(task?.nextProcessAt).toBe(driver.now + 600);
    expect(await run(`task enqueue -t mail -l {} ${all}`)).toEqual({
      status: 1,
      stdout: '',
      stderr: expect.stringMatching(
        /^error: task already exists: task "x" of type "mail", which is scheduled, holds the unique lock in queue "low"; /,
      ) as string,
    });
    expect(await run('task enqueue -t mail -l {} --id x --queue low')).toEqual({
      status: 1,
      stdout: '',
      stderr: expect.stringMatching(
        /^error: task ID conflicts with another task: queue "low" has one with id "x", in whatever state; /,
      ) as string,
    });
    expect(await lines('task enqueue -t mail -l {} --group g --id y')).toEqual([
      'Enqueued task: id="y" queue="default" state=aggregating',
    ]);
    expect(await lines('group list -q default')).toEqual(['Group  Tasks', 'g          1']);
    expect(await json('group list -q default')).toEqual([{ group: 'g', size: 1 }]);
    expect(await json('task enqueue -t mail -l {} --id z --process_at 2030-06-15T15:00:00+02:00')).toMatchObject({
      id: 'z',
      state: 'scheduled',
      nextProcessAt: '2030-06-15T13:00:00.000Z',
    });
    for (const [wrong, why] of [
      ['--unique 10ms', 'Unique TTL cannot be less than 1s'],
      ['--timeout -5s', 'timeout must not be negative'],
      ['--queue= ', 'queue name must contain'],
    ] as const)
      expect(await run(['task', 'enqueue', '-t', 'mail', '-l', '{}', ...wrong.split(/ (?=.)/)])).toMatchObject({
        status: 2,
        stderr: expect.stringContaining(why),
      });
  });

  it('shows servers and periodic tasks', async ({ driver, run, lines, json }) => {
    const { broker, clock } = driver;
    const server = {
      host: 'h',
      pid: 7,
      serverId: 's',
      concurrency: 5,
      queues: { low: 1, high: 6 },
      strictPriority: false,
    };
    const times = { startTime: clock.now() - 90_000, deadline: clock.now() + 60_000 };
    const worker = {
      host: 'h',
      pid: 7,
      serverId: 's',
      taskId: 't',
      taskType: 'mail',
      taskPayload: Buffer.from([255]),
      queue: 'low',
    };
    for (const command of ['server ls', 'cron ls']) expect((await run(command)).stderr).toMatch(/^No (server|process)/);
    await broker.monitoring.writeServerState(
      { ...server, ...times, status: 'active', activeWorkerCount: 1 },
      [{ ...worker, ...times }],
      60,
    );
    expect(await lines('server ls')).toEqual([
      'Host  PID  State   Active  Queues        Started',
      'h       7  active  1/5     high:6 low:1  1m30s ago',
    ]);
    expect(await json('server ls')).toMatchObject([
      {
        id: 's',
        queues: server.queues,
        activeWorkers: [{ taskId: 't', taskPayload: '/w==', taskPayloadEncoding: 'base64' }],
      },
    ]);

    const entry = {
      id: 'e',
      spec: '@hourly',
      taskType: 'mail',
      taskPayload: Buffer.from('{}'),
      enqueueOptions: ['Queue("low")', 'MaxRetry(3)'],
    };
    const planned = { nextEnqueueTime: clock.now() + 3_600_000, prevEnqueueTime: undefined };
    await broker.scheduling.writeSchedulerEntries('h:1:x', [{ ...entry, ...planned }], 60);
    await broker.scheduling.writeSchedulerEntries(
      'h:2:y',
      [{ ...entry, ...planned, prevEnqueueTime: clock.now() }],
      60,
    );
    expect((await lines('cron ls')).map((line) => line.split(/ {2,}/))).toEqual([
      ['EntryID', 'Spec', 'Type', 'Payload', 'Options', 'Next', 'Prev', 'Replicas'],
      [
        'e',
        '@hourly',
        'mail',
        '{}',
        'Queue("low") MaxRetry(3)',
        '2030-06-15T13:00:00Z (in 1h0m0s)',
        '2030-06-15T12:00:00Z (now)',
        '2',
      ],
    ]);
    expect(await json('cron ls')).toEqual([
      {
        id: 'e',
        spec: '@hourly',
        taskType: 'mail',
        taskPayload: '{}',
        taskPayloadEncoding: 'utf8',
        replicas: 2,
        canPause: false,
        pausedAt: null,
        options: entry.enqueueOptions,
        nextEnqueueAt: '2030-06-15T13:00:00.000Z',
        prevEnqueueAt: '2030-06-15T12:00:00.000Z',
      },
    ]);
    for (const taskId of ['t1', 't2', 't3']) {
      clock.advance(1000);
      await broker.scheduling.recordEnqueueEvent('e', { taskId, enqueueTime: clock.now() });
    }
    expect(await lines('cron history e --size 2')).toEqual([
      'Entry e',
      'TaskID  Enqueued',
      't3      2030-06-15T12:00:03Z (now)',
      't2      2030-06-15T12:00:02Z (1s ago)',
    ]);
    expect(await json('cron history e --size 2 --page 2')).toEqual([
      { entryId: 'e', taskId: 't1', enqueuedAt: '2030-06-15T12:00:01.000Z' },
    ]);
    expect(await run('cron history nobody')).toEqual({
      status: 0,
      stdout: 'Entry nobody\n',
      stderr: 'Nothing is known of entry "nobody"\n',
    });
  });

  it('asks servers to cancel', async ({ driver, run, lines }) => {
    const cancelled: string[] = [];
    const stop = await driver.broker.cancellation.subscribeCancellations((id) => cancelled.push(id));
    expect(await lines('task cancel a b')).toEqual(['Asked to cancel task "a"', 'Asked to cancel task "b"']);
    await expect.poll(() => cancelled).toEqual(['a', 'b']);
    await stop();
    expect(await lines(['task', 'cancel', 'c', '--reason', 'withdrawn', '--outcome', 'archive'])).toHaveLength(1);
    expect(await driver.broker.cancellation.findCancellations(['a', 'c'])).toMatchObject([
      { id: 'a', outcome: 'retry' },
      { id: 'c', outcome: 'archive', reason: 'withdrawn' },
    ]);
    const unknown = await run('task cancel c --outcome drop');
    expect(unknown).toMatchObject({ status: 2, stderr: expect.stringContaining('Allowed choices are retry') });
  });

  it('works under another key prefix', async ({ driver, run, lines }) => {
    expect(await lines('--key_prefix tenant task enqueue -t mail -l {} --id x')).toHaveLength(1);
    expect((await driver.redis.keys('*')).every((key) => key.startsWith('tenant:'))).toBe(true);
    expect(await lines('queue ls', { env: { ASYNQ_KEY_PREFIX: 'tenant' } })).toEqual(['default']);
    expect(await lines('queue ls')).toEqual([]);
    expect(await run(['queue', 'ls', '--key_prefix', ''])).toMatchObject({
      status: 2,
      stderr: expect.stringContaining('--key_prefix is empty'),
    });
  });

  it('completes names that need no quotes', async ({ driver, lines }) => {
    for (const queue of ['mail', 'mail:low', 'Überweisung', '$(reboot)', 'a b'])
      await driver.broker.producer.enqueue(queue, [request({ queue })]);
    const entry = { spec: '@hourly', taskType: 't', taskPayload: Buffer.alloc(0), enqueueOptions: [] };
    const times = { nextEnqueueTime: undefined, prevEnqueueTime: undefined };
    for (const scheduler of ['h:1:x', 'h:2:y'])
      await driver.broker.scheduling.writeSchedulerEntries(scheduler, [{ ...entry, ...times, id: 'digest:42' }], 60);
    const after = async (...words: string[]): Promise<string[]> =>
      (await lines(['__complete', '--', '-u', `127.0.0.1:${driver.server.port}`, ...words])).map(
        (line) => line.split('\t')[0]!,
      );
    expect(await after('queue', 'inspect', '')).toEqual(['mail', 'mail:low', 'Überweisung']);
    expect(await after('task', 'list', '-q', 'mail:')).toEqual(['mail:low']);
    expect(await after('task', 'list', '--queue=mail:')).toEqual(['--queue=mail:low']);
    expect(await after('cron', 'history', 'd')).toEqual(['digest:42']);
    expect(await after('--key_prefix', 'other', 'queue', 'pause', '')).toEqual([]);
  });

  describe('with several queues, one of which cannot be read', () => {
    it('shows the others, and names the unreadable one', async ({ driver, run }) => {
      await driver.enqueue([request()]);
      await driver.broker.producer.enqueue('odd', [request({ queue: 'odd' })]);
      await driver.redis.del('asynq:{odd}:pending');
      await driver.redis.set('asynq:{odd}:pending', 'no list');
      const { status, stdout, stderr } = await run('stats --json');
      expect(status).toBe(1);
      expect(stderr).toMatch(/^error: .*"asynq:\{odd\}:pending" is a string and must be a list/);
      expect(JSON.parse(stdout)).toMatchObject({ aggregate: { pending: 1 }, queues: [{ Queue: 'default', Size: 1 }] });
    });

    it('shows and removes a queue with a blank name, which another program wrote', async ({
      driver,
      run,
      lines,
      json,
    }) => {
      await driver.enqueue([request()]);
      await driver.redis.sadd('asynq:queues', '', ' ');
      expect(await json('stats')).toMatchObject({ queues: [{ Queue: '' }, { Queue: ' ' }, { Queue: 'default' }] });
      expect(await json('queue ls')).toMatchObject([{ queue: '' }, { queue: ' ' }, { queue: 'default' }]);
      await lines(['queue', 'rm', '', ' ']);
      expect(await json('queue ls')).toMatchObject([{ queue: 'default' }]);
      const { status, stderr } = await run(['queue', 'rm', ' ']);
      expect([status, stderr]).toEqual([2, expect.stringContaining('queue name must contain')]);
    });
  });
});
