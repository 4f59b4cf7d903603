import { AsynqInspector, defineSignal, defineTask, type EnqueueOptions, workflow } from 'nestjs-asynq';
import { MemoryBroker } from '../../lib/broker/memory/memory-broker.js';
import { ManualClock } from '../../lib/clock.js';
import { call, mistake, type Mistake, refusal } from './mistake.js';

const option = (text: string, options: unknown): Mistake =>
  mistake(`\`enqueue('mail', data, ${text})\``, () =>
    call((client) => client.enqueue('mail', {}, options as EnqueueOptions<unknown>)),
  );
const definition = (text: string, options: unknown): Mistake =>
  mistake(`\`defineTask('mail', ${text})\``, () => refusal(() => defineTask('mail', options as object)));
const payload = (text: string, make: () => unknown): Mistake =>
  mistake(`\`enqueue('mail', ${text})\``, () => call((client) => client.enqueue('mail', make())));

const circle: { self?: unknown } = {};
circle.self = circle;

/** Options of other libraries. */
export const FOREIGN_OPTIONS: readonly Mistake[] = [
  option('{ attempts: 3 }', { attempts: 3 }),
  option('{ delay: 5000 }', { delay: 5000 }),
  option("{ jobId: 'a' }", { jobId: 'a' }),
  option('{ removeOnComplete: true }', { removeOnComplete: true }),
  option('{ removeOnFail: 100 }', { removeOnFail: 100 }),
  option('{ priority: 1 }', { priority: 1 }),
  option("{ repeat: { cron: '0 9 * * *' } }", { repeat: { cron: '0 9 * * *' } }),
  option('{ deduplication: { id } }', { deduplication: {} }),
  option('{ retryDelay: () => 1000 }', { retryDelay: () => 1000 }),
  definition("{ backoff: 'exponential' }", { backoff: 'exponential' }),
  definition('{ lockDuration: 30000 }', { lockDuration: 30_000 }),
  definition('{ limiter: { max: 1, duration: 1000 } }', { limiter: { max: 1, duration: 1000 } }),
  definition('{ rateLimit: { max: 1, duration: 1000 } }', { rateLimit: { max: 1, duration: 1000 } }),
  option("{ unique: { id: 'a', ttl: 1000 } }", { unique: { id: 'a', ttl: 1000 } }),
  option("{ debounce: { id: 'a', ttl: 1000 } }", { debounce: { id: 'a', ttl: 1000 } }),
  mistake("`defineTask({ name: 'mail' })`", () => refusal(() => defineTask({ name: 'mail' } as never))),
  mistake("`enqueue({ name: 'mail', data })`", () =>
    call((client) => client.enqueue({ name: 'mail', data: {} } as never)),
  ),
  mistake("`enqueueMany([{ name: 'mail', data }])`", () =>
    call(async (client) => {
      const [result] = await client.enqueueMany([{ name: 'mail', data: {} } as never]);
      throw result!.error;
    }),
  ),
  mistake("`workflow('order').add('mail', Mail, data, { failParentOnFailure: true })`", () =>
    refusal(() => workflow('order').add('mail', 'mail', {}, { failParentOnFailure: true } as never)),
  ),
  mistake("`start(flow, { jobId: '17' })`", () =>
    call((client) => client.start(workflow('order').add('mail', 'mail'), { jobId: '17' } as never)),
  ),
  mistake("`runAllTasks('mail', 'failed')`", () =>
    refusal(() => new AsynqInspector(new MemoryBroker(new ManualClock())).runAllTasks('mail', 'failed' as never)),
  ),
];

/** Values of options. */
export const VALUES: readonly Mistake[] = [
  option('{ maxRetires: 3 }', { maxRetires: 3 }),
  option('{ maxRetry: -1 }', { maxRetry: -1 }),
  option('{ timeout: 30 }', { timeout: 30 }),
  option("{ timeout: '30' }", { timeout: '30' }),
  option("{ timeout: '5 minutes' }", { timeout: '5 minutes' }),
  option("{ retention: '1 week' }", { retention: '1 week' }),
  option("{ processIn: 'PT5M' }", { processIn: 'PT5M' }),
  option("{ processIn: '00:05:00' }", { processIn: '00:05:00' }),
  option('{ processIn: Date.now() + 60_000 }', { processIn: 1_767_225_660_000 }),
  option("{ processIn: '-5m' }", { processIn: '-5m' }),
  option('{ processIn: date }', { processIn: new Date(0) }),
  option('{ processAt: Date.now() + 60_000 }', { processAt: 1_767_225_660_000 }),
  option("{ processAt: '2026-01-01' }", { processAt: '2026-01-01' }),
  option("{ processAt: date, processIn: '1m' }", { processAt: new Date(0), processIn: '1m' }),
  option("{ deadline: '1h' }", { deadline: '1h' }),
  option('{ unique: true }', { unique: true }),
  option('{ unique: 60 }', { unique: 60 }),
  option("{ unique: { for: '1h', by: [] } }", { unique: { for: '1h', by: [] } }),
  option("{ unique: { for: '1h', by: [7] } }", { unique: { for: '1h', by: [7] } }),
  option("{ once: '1d' }", { once: '1d' }),
  option('{ once: true }', { once: true }),
  option('{ throttle: 5 }', { throttle: 5 }),
  option('{ debounce: true }', { debounce: true }),
  option("{ queue: '' }", { queue: '' }),
  option("{ queue: 'mail:{eu}' }", { queue: 'mail:{eu}' }),
  option('{ headers: { tenant: 7 } }', { headers: { tenant: 7 } }),
  option("{ group: 'g', expiresIn: '1m' }", { group: 'g', expiresIn: '1m' }),
  definition('{ concurrency: 0 }', { concurrency: 0 }),
  definition('{ rateLimit: { max: 10 } }', { rateLimit: { max: 10 } }),
];

/** The task and its payload. */
export const PAYLOADS: readonly Mistake[] = [
  mistake('`enqueue(Mail)`, where two files import each other', () =>
    call((client) => client.enqueue(undefined as never)),
  ),
  mistake('`enqueue(Emails)`, a class', () => call((client) => client.enqueue(class Emails {} as never))),
  mistake("`enqueue('')`", () => call((client) => client.enqueue(''))),
  mistake("`enqueueMany('mail', data)`", () => call((client) => client.enqueueMany('mail', {} as never))),
  payload('{ id: 1n }', () => ({ id: 1n })),
  payload('{ user }', () => ({ user: circle })),
  payload('loadUser()', () => Promise.resolve({})),
  payload('() => data', () => () => ({})),
  mistake('a payload of 6 MiB', () => call((client) => client.enqueue('mail', 'x'.repeat(6 << 20)))),
  mistake("a second `enqueue('mail', data, { unique: '1h' })`", () =>
    call(async (client) => {
      await client.enqueue('mail', {}, { taskId: 'a', unique: '1h' });
      await client.enqueue('mail', {}, { unique: '1h' });
    }),
  ),
  mistake("a second `enqueue('mail', data, { taskId: 'a' })`", () =>
    call(async (client) => {
      await client.enqueue('mail', {}, { taskId: 'a' });
      await client.enqueue('mail', {}, { taskId: 'a' });
    }),
  ),
  mistake("`signal({ queue: 'default', id: 'gone' }, Paid)`", () =>
    call((client) => client.signal({ queue: 'default', id: 'gone' }, defineSignal('paid'))),
  ),
  mistake("`signal(Order, { key: '17' }, Paid)`, and no such order waits", () =>
    call((client) =>
      client.signal(defineTask('order', { unique: { for: '1d', by: 'key' } }), { key: '17' }, defineSignal('paid')),
    ),
  ),
  mistake('`enqueue` after the application was closed', () =>
    call(async (client) => {
      await client.close();
      await client.enqueue('mail');
    }),
  ),
];
