import { describe, expect } from 'vitest';
import type { Settlement } from '../../../lib/broker/broker.js';
import type { ServerProfile } from '../../../lib/broker/server-profile.js';
import type { RepeatRequest } from '../../../lib/broker/uniqueness.js';
import { InvalidOptionError, TaskExpiredError } from '../../../lib/errors.js';
import type { ExplainedReason } from '../../../lib/inspector/explain/reasons.js';
import { AsynqInspector } from '../../../lib/inspector/inspector.js';
import { QueueKeys } from '../../../lib/wire/keys.js';
import type { ServerInfo, WorkerInfo } from '../../../lib/wire/message.js';
import { fairHeader, repeat, request } from '../../support/messages.js';
import { archival, completion, type Driver, type DriverTest, retrial } from '../driver.js';

const PLAIN: ServerProfile = { handlers: [{ pattern: 't' }], queues: {}, aggregates: false };

const ref = (serverId: string) => ({ id: serverId, host: 'h', pid: 42 });

/** Publishes a server of the queue `default`; without a profile it is like Go's. */
async function serve(
  { broker }: Driver,
  profile: ServerProfile | undefined = PLAIN,
  info: Partial<ServerInfo> = {},
  running: readonly Partial<WorkerInfo>[] = [],
) {
  const server: ServerInfo = {
    host: 'h',
    pid: 42,
    serverId: 's',
    concurrency: 10,
    queues: { default: 1 },
    strictPriority: false,
    status: 'active',
    startTime: 0,
    activeWorkerCount: running.length,
    ...info,
  };
  const workers = running.map((one, index) => ({
    host: 'h',
    pid: 42,
    serverId: server.serverId,
    taskId: `running-${index}`,
    taskType: 't',
    taskPayload: Buffer.alloc(0),
    queue: 'default',
    startTime: broker.clock.now(),
    deadline: broker.clock.now() + 60_000,
    ...one,
  }));
  await broker.monitoring.writeServerState(server, workers, 60);
  if (profile) await broker.monitoring.writeServerProfile(server, profile, 60);
}

const serveLikeGo = async (driver: Driver, serverId = 'go') => {
  const info = { host: 'h', pid: 42, serverId, concurrency: 10, queues: { default: 1 }, strictPriority: false };
  await driver.broker.monitoring.writeServerState(
    { ...info, status: 'active', startTime: 0, activeWorkerCount: 0 },
    [],
    60,
  );
};

/** The reasons but that of clocks: that of these tests stands in another year than Redis'. */
async function reasonsFor(driver: Driver, id: string, queue = 'default'): Promise<ExplainedReason[]> {
  const explanation = await new AsynqInspector(driver.broker).explain({ queue, id });
  expect(explanation).toMatchObject({ queue, id, summary: explanation.reasons[0]!.text });
  return explanation.reasons.filter(({ kind }) => kind !== 'clock');
}

async function defer(driver: Driver, waitlist: string): Promise<void> {
  const settle = (await driver.take(100)).map(({ lease }): Settlement => ({ kind: 'wait', lease, waitlist }));
  await driver.settle(...settle);
}

const seconds = (driver: Driver, after: number): Date => new Date((driver.now + after) * 1000);

export function exerciseExplain(it: DriverTest): void {
  describe('explain', () => {
    it('says that nothing is in the way of a task that is next', async ({ driver }) => {
      await serve(driver);
      const id = await driver.add();
      const explanation = await new AsynqInspector(driver.broker).explain({ queue: 'default', id });
      expect(explanation).toMatchObject({
        type: 'test:task',
        state: 'pending',
        timestamp: new Date(driver.clock.now()),
      });
      expect(await reasonsFor(driver, id)).toEqual([
        { kind: 'ready', text: 'Nothing is in its way: a server takes it at once.' },
      ]);
    });

    it('knows a task that does not exist, and a queue that does not', async ({ driver }) => {
      expect(await reasonsFor(driver, 'none')).toMatchObject([{ kind: 'missing', hasQueue: false }]);
      await driver.add();
      expect(await reasonsFor(driver, 'none')).toMatchObject([
        { kind: 'missing', hasQueue: true, text: expect.stringContaining('succeeded and is not kept') },
      ]);
      expect(await reasonsFor(driver, 'none', 'defualt')).toMatchObject([
        { kind: 'missing', similar: 'default', text: expect.stringContaining('Did you mean "default"?') },
      ]);
      const inspector = new AsynqInspector(driver.broker);
      await expect(inspector.explain({ queue: '', id: 'a' })).rejects.toThrow(InvalidOptionError);
      await expect(inspector.explain({ queue: 'default', id: ' ' })).rejects.toThrow(InvalidOptionError);
    });

    it('says what a task waits for in the line of its key', async ({ driver }) => {
      driver.broker.fairQueues.add('default');
      await serve(driver, { ...PLAIN, handlers: [{ pattern: 'test:task' }] });
      const tasks = (key: string, share = {}) =>
        [1, 2, 3].map((number) => request({ id: `${key}-${number}`, headers: fairHeader(key, share) }));
      await driver.enqueue(tasks('a'));
      expect(await reasonsFor(driver, 'a-1')).toMatchObject([{ kind: 'ready' }]);
      await driver.enqueue([...tasks('b', { concurrency: 1 }), ...tasks('c', { rate: 1, window: 16_000 })]);
      expect(await reasonsFor(driver, 'a-3')).toEqual([
        {
          kind: 'keyTurn',
          key: 'a',
          ahead: 2,
          others: 2,
          text: 'It waits in the line of the tasks of key "a", behind 2 of them, which takes turns with 2 other keys.',
        },
      ]);
      await driver.take(9);
      expect(await reasonsFor(driver, 'b-2')).toEqual([
        {
          kind: 'keyLimit',
          key: 'b',
          reached: ['concurrency'],
          concurrency: 1,
          rate: undefined,
          running: 1,
          holders: [
            {
              queue: 'default',
              id: 'b-1',
            },
          ],
          opensAt: undefined,
          text: 'A limit of its key "b" is reached: 1 at a time, and 1 has a slot. Its places are held by task b-1 in queue "default".',
        },
      ]);
      const [limit, turn] = await reasonsFor(driver, 'c-3');
      expect(limit).toMatchObject({ kind: 'keyLimit', reached: ['rate'], rate: { max: 1, per: 16_000 }, holders: [] });
      expect(limit!.text).toMatch(/^A limit of its key "c" is reached: 1 starts per 16s. More may start at /);
      expect(turn).toMatchObject({ kind: 'keyTurn', ahead: 1, others: 0 });
    });

    it('names a pause first, and then what would hold the task after it', async ({ driver }) => {
      const id = await driver.add();
      await driver.broker.administration.pauseQueue('default');
      expect(await reasonsFor(driver, id)).toMatchObject([{ kind: 'queuePaused' }, { kind: 'notServed', servers: 0 }]);
    });

    it('knows that no server takes tasks of the queue', async ({ driver }) => {
      const id = await driver.add();
      expect(await reasonsFor(driver, id)).toMatchObject([{ kind: 'notServed', servers: 0, text: 'No server runs.' }]);
      await serve(driver, PLAIN, { queues: { other: 1 } });
      expect(await reasonsFor(driver, id)).toMatchObject([{ kind: 'notServed', servers: 1 }]);
      await serve(driver, { ...PLAIN, handlers: [] }, { serverId: 'without handlers' });
      expect(await reasonsFor(driver, id)).toMatchObject([{ kind: 'notServed', servers: 2 }]);
    });

    it('knows that all its servers drain', async ({ driver }) => {
      const id = await driver.add();
      await serve(driver, PLAIN, { status: 'stopped' });
      expect(await reasonsFor(driver, id)).toMatchObject([{ kind: 'draining', servers: [ref('s')] }]);
    });

    it('knows servers without a handler for the type, and those of which nobody knows', async ({ driver }) => {
      const id = await driver.add({ type: 'other' });
      await serve(driver);
      expect(await reasonsFor(driver, id)).toMatchObject([{ kind: 'noHandler', servers: [ref('s')], others: 0 }]);
      await serveLikeGo(driver);
      expect(await reasonsFor(driver, id)).toMatchObject([
        { kind: 'noHandler', others: 1 },
        { kind: 'handlersUnknown', servers: [ref('go')] },
      ]);
      await driver.broker.monitoring.clearServerState({ host: 'h', pid: 42, serverId: 's' });
      expect(await reasonsFor(driver, id)).toMatchObject([{ kind: 'ready' }, { kind: 'handlersUnknown' }]);
    });

    it('finds handlers of prefixes as servers do', async ({ driver }) => {
      const handlers = [{ pattern: 'email:', version: 3 }, { pattern: 'email:welcome', version: 2 }, { pattern: 'x' }];
      await serve(driver, { ...PLAIN, handlers });
      const headers = { 'asynq-payload-version': '3' };
      const first = await driver.add({ type: 'email:bye', headers });
      const second = await driver.add({ type: 'email:welcome', headers });
      expect(await reasonsFor(driver, first)).toMatchObject([{ kind: 'ready' }]);
      expect(await reasonsFor(driver, second)).toMatchObject([
        { kind: 'payloadTooNew', version: 3, known: 2, deferred: false },
        { kind: 'behind', ahead: 1 },
      ]);
    });

    it('knows a task that waits for a server that knows its payload', async ({ driver }) => {
      await serve(driver);
      const id = await driver.add({ headers: { 'asynq-payload-version': '2' } });
      await defer(driver, '~newer:test:task');
      expect(await reasonsFor(driver, id)).toMatchObject([
        { kind: 'payloadTooNew', version: 2, known: 1, deferred: true, retryAt: seconds(driver, 60) },
      ]);
    });

    it('names a limit of the handler, and who has its places', async ({ driver }) => {
      const limits = { scope: 'mail', globalConcurrency: 2, rate: 3, window: 16_000 };
      await serve(driver, { ...PLAIN, handlers: [{ pattern: 't', ...limits }] });
      await driver.broker.limiting.acquireTokens('mail', 2, driver.now + 30, ['{default}:a', 'foreign']);
      const [first, second] = [await driver.add(), await driver.add()];
      expect(await reasonsFor(driver, first)).toMatchObject([
        { kind: 'handlerLimit', scope: 'mail', reached: ['globalConcurrency'], deferred: false },
      ]);
      await defer(driver, 'mail');
      expect(await reasonsFor(driver, second)).toMatchObject([
        {
          kind: 'handlerLimit',
          limits: { globalConcurrency: 2, rate: 3, window: 16_000 },
          running: 2,
          holders: [
            { queue: '', id: 'foreign' },
            { queue: 'default', id: 'a' },
          ],
          deferred: true,
          ahead: 1,
          retryAt: seconds(driver, 60),
        },
      ]);
      await driver.broker.limiting.releaseTokens('mail', ['{default}:a', 'foreign']);
      await driver.broker.limiting.takeStarts('mail', { max: 3, window: 16_000 }, 3);
      const [reason] = await reasonsFor(driver, first);
      expect(reason).toMatchObject({ kind: 'handlerLimit', reached: ['rateLimit'], ahead: 0, holders: [] });
      expect(reason!.text).toContain('3 starts per 16s');
      driver.clock.advance(40_000);
      expect(await reasonsFor(driver, first)).toMatchObject([{ kind: 'handlerLimit', reached: [] }]);
    });

    it('names a rate with costs, and what is left of it', async ({ driver }) => {
      const limits = { scope: 'model', rate: 100, window: 16_000, costs: true } as const;
      await serve(driver, { ...PLAIN, handlers: [{ pattern: 't', ...limits }] });
      await driver.broker.limiting.takeCosts('model', { max: 100, window: 16_000 }, [70]);
      const id = await driver.add();
      expect(await reasonsFor(driver, id)).toMatchObject([{ kind: 'ready' }]);
      await defer(driver, 'model');
      const [reason] = await reasonsFor(driver, id);
      expect(reason).toMatchObject({ kind: 'handlerLimit', reached: ['rateLimit'], left: 30, deferred: true });
      expect(reason!.text).toContain('tasks may cost 100 per 16s, and 30 is left');
    });

    it('names a limit of the handler in each process', async ({ driver }) => {
      const handlers = [{ pattern: 't', scope: 't', concurrency: 1 }];
      await serve(driver, { ...PLAIN, handlers }, {}, [{}]);
      const id = await driver.add();
      const holders = [{ queue: 'default', id: 'running-0' }];
      const reached = { kind: 'handlerLimit', reached: ['concurrency'], running: 1, holders };
      expect(await reasonsFor(driver, id)).toMatchObject([reached]);
      await serve(driver, { ...PLAIN, handlers }, { serverId: 'free' });
      expect(await reasonsFor(driver, id)).toMatchObject([{ kind: 'ready' }]);
    });

    it('says so when no server has published the limit that a task waits for', async ({ driver }) => {
      const id = await driver.add();
      await defer(driver, 'unheard of');
      expect(await reasonsFor(driver, id)).toMatchObject([
        { kind: 'handlerLimit', scope: 'unheard of', deferred: true },
        { kind: 'notServed' },
      ]);
    });

    it('names a limit of the queue', async ({ driver }) => {
      await serve(driver, { ...PLAIN, queues: { default: { globalConcurrency: 1, rate: 1, window: 16_000 } } });
      const limits = { active: 0, rate: 1, window: 16_000 };
      await driver.add();
      await driver.broker.consumer.exchange('default', { settle: [], take: 1, limits });
      const id = await driver.add();
      expect(await reasonsFor(driver, id)).toMatchObject([
        { kind: 'queueLimit', reached: ['globalConcurrency', 'rateLimit'], running: 1, opensAt: expect.any(Date) },
      ]);
      await serve(driver, PLAIN, { serverId: 'without a limit' });
      expect(await reasonsFor(driver, id)).toMatchObject([{ kind: 'ready' }]);
    });

    it('counts the tasks before it, the slots, and queues of a higher priority', async ({ driver }) => {
      await driver.add();
      await driver.add();
      const id = await driver.add();
      await driver.enqueue([request({ queue: 'urgent' })], 'urgent');
      await serve(driver, PLAIN, { concurrency: 2, queues: { default: 1, urgent: 5 }, strictPriority: true }, [{}, {}]);
      expect(await reasonsFor(driver, id)).toMatchObject([
        { kind: 'serversFull', running: 2, slots: 2, servers: 1 },
        { kind: 'priority', queues: [{ queue: 'urgent', pending: 1 }] },
        { kind: 'behind', ahead: 2 },
      ]);
      await serve(driver, PLAIN, { serverId: 'other', concurrency: 1 });
      expect(await reasonsFor(driver, id)).toMatchObject([{ kind: 'behind', ahead: 2 }]);
    });

    it('names the time of a task that has one, and what would hold it then', async ({ driver }) => {
      const id = await driver.add({}, { processAt: driver.now + 60 });
      expect(await reasonsFor(driver, id)).toMatchObject([
        { kind: 'scheduled', at: seconds(driver, 60), text: expect.stringContaining('(in 1m0s)') },
        { kind: 'notServed' },
      ]);
      await serve(driver);
      expect(await reasonsFor(driver, id)).toMatchObject([{ kind: 'scheduled' }]);
      driver.clock.advance(60_000);
      await serve(driver);
      expect(await reasonsFor(driver, id)).toMatchObject([{ kind: 'due', at: seconds(driver, 0) }]);
    });

    it('names the steps in which its handler sleeps or waits', async ({ driver }) => {
      const { lease } = await driver.takeNew();
      const { checkpoints } = driver.broker;
      const at = driver.clock.now();
      const write = (name: string, head: object) =>
        checkpoints.write(lease, name, Buffer.from(`${JSON.stringify({ at, ...head })}\n`));
      await write('done', { n: 0, kind: 'run', ended: at });
      await write('nap', { n: 1, kind: 'sleep', until: at + 60_000 });
      await write('ok', { n: 2, kind: 'wait', until: at + 90_000, signal: 'approval' });
      await write('bill', { n: 3, kind: 'call', queue: 'render', id: 'b' });
      await write('ship', { n: 4, kind: 'run', tries: 1, until: at + 5_000 });
      await driver.settle({ kind: 'sleep', lease, wakeAt: driver.now + 60 });
      await serve(driver);
      const time = (after: number) => new Date(at + after * 1000).toISOString().replace(/\.\d+Z/, 'Z');
      expect(await reasonsFor(driver, lease.id)).toMatchObject([
        {
          kind: 'suspended',
          at: seconds(driver, 60),
          steps: [{ name: 'nap' }, { name: 'ok' }, { name: 'bill' }, { name: 'ship' }],
          text:
            `Its handler sleeps in step "nap" until ${time(60)} (in 1m0s), waits for the signal "approval" in step "ok", which ends at ` +
            `${time(90)} (in 1m30s), waits for task b in queue "render" in step "bill", tries step "ship" again at ${time(5)} (in 5s). ` +
            `It is called again at ${time(60)} (in 1m0s) at the latest.`,
        },
      ]);
    });

    it('says that a task is too late to run', async ({ driver }) => {
      await serve(driver);
      const expired = await driver.add({ headers: { 'asynq-expires-at': `${driver.clock.now() - 1} drop` } });
      const overdue = await driver.add({ deadline: driver.now - 5 }, { processAt: driver.now + 60 });
      const at = new Date(driver.clock.now() - 1);
      expect(await reasonsFor(driver, expired)).toMatchObject([
        { kind: 'tooLate', at, limit: 'expiry', outcome: 'drop' },
      ]);
      expect(await reasonsFor(driver, overdue)).toMatchObject([
        { kind: 'scheduled' },
        { kind: 'tooLate', at: seconds(driver, -5), limit: 'deadline', outcome: 'archive' },
      ]);
      const { message, lease } = await driver.takeOne();
      await driver.settle(retrial({ message: { ...message, retried: 1 }, lease }, driver.now + 9));
      expect(await reasonsFor(driver, expired)).toMatchObject([{ kind: 'retry' }]); // only the first attempt had to begin in time
    });

    it('names the next retry and the last error', async ({ driver }) => {
      await serve(driver);
      const task = await driver.takeNew({ maxRetry: 5 });
      const message = { ...task.message, retried: 2, errorMsg: 'no route to host', lastFailedAt: driver.now };
      await driver.settle(retrial({ ...task, message }, driver.now + 90));
      expect(await reasonsFor(driver, task.lease.id)).toMatchObject([
        {
          kind: 'retry',
          at: seconds(driver, 90),
          retried: 2,
          maxRetry: 5,
          error: 'no route to host',
          failedAt: seconds(driver, 0),
        },
      ]);
    });

    it('says where a task runs, until when', async ({ driver }) => {
      const { lease } = await driver.takeNew();
      const leaseUntil = new Date(lease.expiresAt * 1000);
      expect(await reasonsFor(driver, lease.id)).toMatchObject([{ kind: 'running', server: undefined, leaseUntil }]);
      await serve(driver, PLAIN, {}, [{ taskId: lease.id }]);
      const now = driver.clock.now();
      expect(await reasonsFor(driver, lease.id)).toMatchObject([
        { kind: 'running', server: ref('s'), since: new Date(now), deadline: new Date(now + 60_000), leaseUntil },
      ]);
    });

    it('says when a lost task is recovered, and that nobody is there to do it', async ({ driver }) => {
      const { lease } = await driver.takeNew();
      driver.clock.advance(31_000);
      const recoverableAt = new Date((lease.expiresAt + 30) * 1000);
      const expired = { kind: 'leaseExpired', leaseUntil: new Date(lease.expiresAt * 1000), recoverableAt };
      expect(await reasonsFor(driver, lease.id)).toMatchObject([expired, { kind: 'notServed' }]);
      await serve(driver);
      expect(await reasonsFor(driver, lease.id)).toMatchObject([expired]);
    });

    it('says that a task is over, and why', async ({ driver }) => {
      const completed = await driver.takeNew();
      const { message } = completed;
      await driver.settle(
        completion({ ...completed, message: { ...message, completedAt: driver.now } }, driver.now + 60),
      );
      expect(await reasonsFor(driver, completed.lease.id)).toMatchObject([
        { kind: 'completed', at: seconds(driver, 0) },
      ]);
      const causes = { action: {}, retries: { errorMsg: 'x', retried: 25 }, failure: { errorMsg: 'x', retried: 1 } };
      for (const [cause, failed] of Object.entries(causes)) {
        const task = await driver.takeNew({ maxRetry: 25 });
        await driver.settle(archival({ ...task, message: { ...task.message, ...failed } }));
        expect(await reasonsFor(driver, task.lease.id)).toMatchObject([{ kind: 'archived', cause }]);
      }
    });

    it('says that a task has expired and was archived for that', async ({ driver }) => {
      const at = driver.clock.now() - 1;
      const { message: errorMsg } = new TaskExpiredError(new Date(at), new Date(at + 1));
      const task = await driver.takeNew({ headers: { 'asynq-expires-at': `${at}` } });
      const lastFailedAt = driver.now;
      await driver.settle(archival({ ...task, message: { ...task.message, errorMsg, lastFailedAt } }));
      const [reason] = await reasonsFor(driver, task.lease.id);
      expect(reason).toMatchObject({ kind: 'archived', cause: 'expiry', error: errorMsg });
      expect(reason!.text).toBe(
        'It is archived: it expired, as it had not begun in time (expiresIn), and it has not run. ' +
          `It runs again only if somebody runs it. The last error is: ${errorMsg}`,
      );
      const quotes = await driver.takeNew(); // a task without an expiry, whose handler quotes such an error
      await driver.settle(archival({ ...quotes, message: { ...quotes.message, errorMsg } }));
      expect(await reasonsFor(driver, quotes.lease.id)).toMatchObject([{ kind: 'archived', cause: 'failure' }]);
    });

    it('says that a task is the latest, and waits for the one that runs', async ({ driver }) => {
      await serve(driver);
      const lock = new QueueKeys('asynq', 'default').lock('test:task', 'last', ['order-7']);
      const latest = (id: string): RepeatRequest => {
        const { repeat: how, message, ...rest } = repeat('latest', id, { limit: driver.now + 60 });
        return { ...rest, message: { ...message, uniqueKey: lock }, repeat: { ...how, lock } };
      };
      await driver.broker.uniqueness.enqueue('default', [latest('first')]);
      await driver.takeOne();
      await driver.broker.uniqueness.enqueue('default', [latest('second')]);
      const [reason] = await reasonsFor(driver, 'second');
      expect(reason).toMatchObject({ kind: 'waiting', prerequisites: 1, follows: true, until: seconds(driver, 60) });
      expect(reason!.text).toContain(
        'It has the last payload of its key (latest), and begins when the one before it has ended, however that ends: task first in queue "default".',
      );
    });

    it('names the tasks that a task waits for', async ({ driver }) => {
      await serve(driver);
      const first = await driver.add();
      const waiting = {
        ...request({ id: 'waits' }),
        wait: {
          prerequisites: [{ queue: 'default', id: first }],
          onFailure: 'cancel',
          onTimeout: 'archive',
          deadline: driver.now + 60,
        },
      } as const;
      await driver.broker.links.enqueue('default', [waiting]);
      expect(await reasonsFor(driver, 'waits')).toMatchObject([
        {
          kind: 'waiting',
          open: [{ prerequisite: { queue: 'default', id: first }, state: 'waiting', paused: false }],
          prerequisites: 1,
          follows: false,
          until: seconds(driver, 60),
          text: expect.stringContaining(`It waits for 1 of 1 task: task ${first} in queue "default".`),
        },
      ]);
      await driver.broker.administration.deleteQueue('default', { force: true });
    });

    it('says that nobody serves the queue of a task that it waits for', async ({ driver }) => {
      await serve(driver);
      const first = await driver.add({ queue: 'nobody' });
      const wait = { onFailure: 'cancel', onTimeout: 'archive', deadline: driver.now + 60 } as const;
      const prerequisites = [{ queue: 'nobody', id: first }];
      await driver.broker.links.enqueue('default', [{ ...request({ id: 'waits' }), wait: { ...wait, prerequisites } }]);
      expect(await reasonsFor(driver, 'waits')).toMatchObject([
        {
          kind: 'waiting',
          open: [{ prerequisite: { queue: 'nobody', id: first }, unserved: true }],
          text: expect.stringContaining(`task ${first} in queue "nobody", whose queue no server serves.`),
        },
      ]);
    });

    it('says that a task is in a group, and whether a server makes one task of it', async ({ driver }) => {
      const id = await driver.add({ groupKey: 'g' });
      await serve(driver);
      expect(await reasonsFor(driver, id)).toMatchObject([{ kind: 'aggregating', group: 'g', aggregated: false }]);
      await serveLikeGo(driver);
      expect((await reasonsFor(driver, id))[0]).toMatchObject({ kind: 'aggregating', aggregated: undefined });
      await serve(driver, { ...PLAIN, aggregates: true });
      expect((await reasonsFor(driver, id))[0]).toMatchObject({ kind: 'aggregating', aggregated: true });
    });
  });
}
