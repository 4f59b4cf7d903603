import { AsyncLocalStorage } from 'node:async_hooks';
import { Injectable, Module } from '@nestjs/common';
import { ClsPluginTransactional, Transactional, TransactionHost } from '@nestjs-cls/transactional';
import { TransactionalAdapterTypeOrm } from '@nestjs-cls/transactional-adapter-typeorm';
import {
  AsynqClient,
  AsynqHealth,
  AsynqModule,
  clsTransactions,
  defineTask,
  type EnqueueOptions,
  TaskHandler,
  type TransactionScope,
  typeormTransactions,
} from 'nestjs-asynq';
import { AsynqOutbox, AsynqOutboxModule, type AsynqOutboxOptions, pgOutbox, typeormOutbox } from 'nestjs-asynq/outbox';
import { AsynqMetricsModule } from 'nestjs-asynq/metrics';
import { ClsModule } from 'nestjs-cls';
import { DataSource } from 'typeorm';
import pg from 'pg';
import { Registry } from 'prom-client';
import {
  addTransactionalDataSource,
  deleteDataSourceByName,
  initializeTransactionalContext,
  Propagation,
  runInTransaction,
  StorageDriver,
} from 'typeorm-transactional';
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { rejection, testApp } from '../nest/support.js';
import type { DatabaseServer } from '../support/database-server.js';
import { createTables, PG, type StoreWorld } from './stores.js';

const Mail = defineTask<{ n: number }>('mail', { queue: 'mails' });
const Paid = defineTask<{ n: number }>('paid', { key: ({ n }) => String(n), rememberFor: '1h' });
const Report = defineTask<{ n: number }>('report', { key: ({ n }) => String(n), after: Paid });

let server: DatabaseServer;
let world: StoreWorld;
beforeAll(async () => {
  server = await PG.start();
  world = await PG.open(server);
});
afterAll(async () => {
  await world.close();
  await server.stop();
});
beforeEach(() => createTables(world, PG));

const boot = (options: Partial<AsynqOutboxOptions> = {}) =>
  testApp({ imports: [AsynqOutboxModule.forRoot({ store: world.store, relay: false, ...options })] });

describe('an outbox', () => {
  it('stores tasks in the transaction, and its relay brings them to their queues as they are', async () => {
    const { app, tasks } = await boot();
    await app.init();
    const [asynq, outbox] = [app.get(AsynqClient), app.get(AsynqOutbox)];
    const info = await world.transaction((tx) =>
      outbox.within(tx, async () => {
        const made = await asynq.enqueue(Mail, { n: 1 }, { maxRetry: 3, headers: { a: 'b' } });
        await asynq.enqueueMany(Mail, [{ n: 2 }, { n: 3 }], { processIn: '1h', unique: '2h' });
        return made;
      }),
    );
    const rolledBack = world.transaction((tx) =>
      outbox.within(tx, async () => {
        await asynq.enqueue(Mail, { n: 4 });
        throw new Error('roll back');
      }),
    );
    expect((await rejection(rolledBack)).message).toBe('roll back');
    expect(tasks.enqueued()).toEqual([]);
    expect(await outbox.counts()).toMatchObject({ fresh: 3 });
    await outbox.drain();
    expect(await outbox.counts()).toEqual({ fresh: 0, taken: 0, poisoned: 0, oldest: 0 });
    const [first, second] = tasks.enqueued(Mail);
    expect(first).toMatchObject({ id: info.id, payload: { n: 1 }, maxRetry: 3, headers: { a: 'b' }, state: 'pending' });
    expect(second).toMatchObject({ payload: { n: 2 }, state: 'scheduled' });
    expect(tasks.enqueued(Mail)).toHaveLength(3);
    await asynq.enqueue(Mail, { n: 5 }); // in no transaction: at once
    expect(tasks.enqueued(Mail)).toHaveLength(4);
    expect(await rejection(asynq.enqueue(Mail, { n: 2 }, { unique: '1h' }))).toMatchObject({
      code: 'ASYNQ_DUPLICATE_TASK',
    });
  });

  it('stores tasks that wait for others', async () => {
    const { app, tasks } = await boot();
    await app.init();
    const [asynq, outbox] = [app.get(AsynqClient), app.get(AsynqOutbox)];
    await world.transaction((tx) => outbox.within(tx, () => asynq.enqueue(Report, { n: 1 })));
    const missing = { after: { queue: 'mails', id: 'nobody' } };
    await world.transaction((tx) => outbox.within(tx, () => asynq.enqueue('t', {}, missing)));
    await outbox.drain();
    expect(tasks.waiting(Report)).toHaveLength(1);
    expect(tasks.enqueued('t')).toEqual([]);
    expect(await world.sql(`SELECT type, state, error FROM asynq_outbox ORDER BY id`)).toMatchObject([
      { type: 'report', state: 'sent', error: null },
      { type: 't', state: 'refused', error: expect.stringContaining('nobody') as string },
    ]);
  });

  it('brings a task that waits for another of its transaction after that one, whatever their queues', async () => {
    const { app, tasks } = await boot();
    await app.init();
    const [asynq, outbox] = [app.get(AsynqClient), app.get(AsynqOutbox)];
    await world.transaction((tx) =>
      outbox.within(tx, async () => {
        await asynq.enqueue('t', {});
        const first = await asynq.enqueue(Mail, { n: 1 });
        const second = await asynq.enqueue('second', {}, { after: first });
        await asynq.enqueue('third', {}, { queue: 'mails', after: second });
      }),
    );
    await outbox.drain();
    expect(await world.sql(`SELECT type, state, error FROM asynq_outbox WHERE state = 'refused'`)).toEqual([]);
    expect(tasks.waiting('second')).toHaveLength(1);
    expect(tasks.waiting('third')).toHaveLength(1);
    expect(await outbox.counts()).toMatchObject({ fresh: 0, taken: 0 });
  });

  it('lets a task wait for another of its transaction that another relay has taken, for an hour at most', async () => {
    const { app, tasks } = await boot();
    await app.init();
    const [asynq, outbox] = [app.get(AsynqClient), app.get(AsynqOutbox)];
    await world.transaction((tx) =>
      outbox.within(tx, async () => {
        const first = await asynq.enqueue(Mail, { n: 1 });
        await asynq.enqueue('second', {}, { after: first });
      }),
    );
    const { store } = world;
    const { id: sender } = await store.takeSender('other', 30_000);
    await store.exchange({ sender, owner: 'other', take: 1, ended: [], except: [] }, 30_000);
    await outbox.drain();
    expect(await outbox.counts()).toMatchObject({ fresh: 0, taken: 2 });
    tasks.clock.advance(3_600_000);
    await outbox.drain();
    expect(await world.sql(`SELECT type, state FROM asynq_outbox ORDER BY id`)).toEqual([
      { type: 'mail', state: 'taken' },
      { type: 'second', state: 'refused' },
    ]);
  });

  it('knows when the work of a transaction is over: what comes later is enqueued at once', async () => {
    const { app, tasks } = await boot();
    await app.init();
    const [asynq, outbox] = [app.get(AsynqClient), app.get(AsynqOutbox)];
    let goOn = (): void => {};
    const gate = new Promise<void>((resolve) => (goOn = resolve));
    let late: Promise<unknown> | undefined;
    await world.transaction((tx) =>
      outbox.within(tx, async () => {
        late = gate.then(() => asynq.enqueue(Mail, { n: 1 }));
      }),
    );
    goOn();
    await late;
    expect(tasks.enqueued(Mail)).toHaveLength(1);
    await expect(outbox.within({ query: 'no function' }, () => asynq.enqueue(Mail, { n: 2 }))).rejects.toMatchObject({
      code: 'ASYNQ_INVALID_TASK',
    });
  });

  it('writes into the innermost transaction: one that begins within a named one is seen, and the other way round', async () => {
    const around = new AsyncLocalStorage<TransactionScope>();
    const { app, tasks } = await testApp(
      { imports: [AsynqOutboxModule.forRoot({ store: world.store, relay: false })] },
      { transactions: { current: () => around.getStore() && { ...around.getStore()! } } },
    );
    await app.init();
    const [asynq, outbox] = [app.get(AsynqClient), app.get(AsynqOutbox)];
    const mail = (n: number) => asynq.enqueue(Mail, { n });
    const named = (work: () => Promise<unknown>) => world.transaction((tx) => outbox.within(tx, work));
    const seen = (work: () => Promise<unknown>) =>
      world.transaction((tx) => around.run({ tx, afterCommit: () => undefined }, work));
    const failed = new Error('roll back');
    const andFail = (work: Promise<unknown>) => work.then(() => Promise.reject(failed));
    const undone = async (run: Promise<unknown>) => expect(await rejection(run)).toBe(failed);
    await undone(
      named(async () => {
        await seen(() => mail(1));
        await undone(seen(() => andFail(mail(2))));
        await andFail(mail(3));
      }),
    );
    await undone(
      seen(async () => {
        await named(() => mail(4));
        await undone(named(() => andFail(mail(5))));
        await named(() => around.exit(() => mail(6))); // in none: at once
        await andFail(mail(7));
      }),
    );
    expect(tasks.enqueued(Mail).map(({ payload }) => payload.n)).toEqual([6]);
    await outbox.drain();
    expect(tasks.enqueued(Mail).map(({ payload }) => payload.n)).toEqual([6, 1, 4]);
  });

  it('notes why a task was refused', async () => {
    const { app, tasks } = await boot();
    await app.init();
    const [asynq, outbox] = [app.get(AsynqClient), app.get(AsynqOutbox)];
    await world.transaction((tx) =>
      outbox.within(tx, () => asynq.enqueueMany(Mail, [{ n: 1 }, { n: 1 }, { n: 2 }], { unique: '1h' })),
    );
    await outbox.drain();
    expect(tasks.enqueued(Mail)).toHaveLength(2);
    expect(await world.sql(`SELECT state, error FROM asynq_outbox ORDER BY id`)).toMatchObject([
      { state: 'sent' },
      { state: 'refused', error: expect.stringContaining('task already exists') as string },
      { state: 'sent' },
    ]);
  });

  it('brings a task with once to its queue once, and is not surprised by the second', async () => {
    const { app, tasks } = await boot();
    await app.init();
    const [asynq, outbox] = [app.get(AsynqClient), app.get(AsynqOutbox)];
    const warnings: unknown[] = [];
    const ignore = () => undefined;
    app.useLogger({ log: ignore, error: ignore, warn: (message: unknown) => void warnings.push(message) });
    const charge = (n: number) =>
      world.transaction((tx) => outbox.within(tx, () => asynq.enqueue(Mail, { n }, { key: String(n), once: '1d' })));
    const { id } = await charge(1);
    await charge(1);
    await outbox.drain();
    expect(tasks.enqueued(Mail)).toMatchObject([{ id, payload: { n: 1 }, retention: 86_400_000 }]);
    expect(await asynq.enqueue(Mail, { n: 1 }, { key: '1', once: '1d' })).toMatchObject({ id, created: false });
    await charge(1);
    await charge(2);
    await outbox.drain();
    expect(tasks.enqueued(Mail)).toMatchObject([{ id }, { payload: { n: 2 } }]);
    const there = { state: 'existing', error: `task "${id}" is there already` };
    expect(await world.sql(`SELECT state, error FROM asynq_outbox ORDER BY id`)).toEqual([
      { state: 'sent', error: null },
      there,
      there,
      { state: 'sent', error: null },
    ]);
    expect(warnings).toEqual([]);
  });

  it('applies what a call says about repeats when it brings the row, in the order of the rows', async () => {
    const { app, tasks } = await boot();
    await app.init();
    const [asynq, outbox] = [app.get(AsynqClient), app.get(AsynqOutbox)];
    const warnings: unknown[] = [];
    const ignore = () => undefined;
    app.useLogger({ log: ignore, error: ignore, warn: (message: unknown) => void warnings.push(message) });
    const call = (n: number, options: EnqueueOptions<{ n: number }>) =>
      world.transaction((tx) => outbox.within(tx, () => asynq.enqueue(Mail, { n }, { key: 'k', ...options })));
    const first = await call(1, { debounce: { wait: '10s', maxWait: '1h' } });
    await call(2, { debounce: { wait: '10s', maxWait: '1h' } });
    const throttled = await call(3, { throttle: '1m' });
    await call(4, { throttle: '1m' });
    const held = await call(5, { unique: { for: '1m', by: 'key', until: 'expired' }, key: 'other' });
    await call(5, { unique: { for: '1m', by: 'key', until: 'expired' }, key: 'other' });
    expect(await outbox.counts()).toMatchObject({ fresh: 6, taken: 0 });
    await outbox.drain();
    expect(await world.sql(`SELECT state, error FROM asynq_outbox ORDER BY id`)).toMatchObject([
      { state: 'sent' },
      { state: 'replaced', error: `task "${first.id}" has got its payload` },
      { state: 'sent' },
      { state: 'existing', error: `task "${throttled.id}" is there already` },
      { state: 'sent' },
      { state: 'refused', error: expect.stringContaining('task already exists') as string },
    ]);
    expect(warnings).toHaveLength(1);
    expect(tasks.enqueued(Mail)).toMatchObject([
      { id: throttled.id, payload: { n: 3 } },
      { id: held.id, payload: { n: 5 } },
      { id: first.id, payload: { n: 2 }, state: 'scheduled' },
    ]);
    expect(await outbox.counts()).toEqual({ fresh: 0, taken: 0, poisoned: 0, oldest: 0 });
  });

  it('keeps a row that cannot be read, and sends those around it', async () => {
    const { app, tasks } = await boot();
    await app.init();
    const [asynq, outbox] = [app.get(AsynqClient), app.get(AsynqOutbox)];
    await world.transaction((tx) => outbox.within(tx, () => asynq.enqueueMany(Mail, [{ n: 1 }, { n: 2 }, { n: 3 }])));
    const [{ message }] = (await world.sql(
      `UPDATE asynq_outbox r SET message = '\\xff' FROM asynq_outbox b WHERE b.id = r.id AND r.id = 2 RETURNING b.message`,
    )) as [{ message: Buffer }];
    await outbox.drain();
    expect(tasks.enqueued(Mail).map(({ payload }) => payload.n)).toEqual([1, 3]);
    expect(await outbox.counts()).toMatchObject({ fresh: 0, poisoned: 1 });
    expect(await world.sql(`SELECT error FROM asynq_outbox WHERE state = 'poisoned'`)).toMatchObject([
      { error: expect.stringContaining('row 2 of the outbox cannot be read') as string },
    ]);
    await world.sql(`UPDATE asynq_outbox SET message = '\\x${message.toString('hex')}' WHERE id = 2`);
    expect(await outbox.retryPoisoned()).toBe(1);
    await outbox.drain();
    expect(tasks.enqueued(Mail).map(({ payload }) => payload.n)).toEqual([1, 3, 2]);
  });

  it('is told of rows by PostgreSQL, and works with handlers', async () => {
    const seen: number[] = [];
    let done = (): void => {};
    const both = new Promise<void>((resolve) => (done = resolve));
    @Injectable()
    class Mails {
      @TaskHandler(Mail)
      mail({ n }: { n: number }): void {
        if (seen.push(n) === 2) done();
      }
    }
    @Module({
      imports: [
        AsynqModule.forRoot({ connection: 'memory', server: { queues: { mails: 1 } } }),
        AsynqOutboxModule.forRoot({ store: world.store, pollInterval: '10s' }),
      ],
      providers: [Mails],
    })
    class App {}
    const { Test } = await import('@nestjs/testing');
    const app = await Test.createTestingModule({ imports: [App] }).compile();
    onTestFinished(() => app.close());
    await app.init();
    const [asynq, outbox] = [app.get(AsynqClient), app.get(AsynqOutbox)];
    await world.transaction((tx) => outbox.within(tx, () => asynq.enqueueMany(Mail, [{ n: 1 }, { n: 2 }])));
    await both;
    expect(seen).toEqual([1, 2]);
  });

  it('is the same call as after-commit: with transactions, enqueue writes rows', async () => {
    const source = await new DataSource({
      type: 'postgres',
      host: '127.0.0.1',
      port: server.port,
      username: 'postgres',
      database: 'postgres',
    }).initialize();
    onTestFinished(() => source.destroy());
    @Module({ providers: [{ provide: DataSource, useValue: source }], exports: [DataSource] })
    class Database {}
    @Injectable()
    class Signup {
      constructor(
        private readonly asynq: AsynqClient,
        private readonly host: TransactionHost<TransactionalAdapterTypeOrm>,
      ) {}
      @Transactional()
      async signUp(n: number): Promise<void> {
        await this.host.tx.query(`INSERT INTO users VALUES (${n})`);
        await this.asynq.enqueue(Mail, { n });
        if (n === 2) throw new Error('roll back');
      }
    }
    await world.sql('DROP TABLE IF EXISTS users');
    await world.sql('CREATE TABLE users (n int)');
    const adapter = new TransactionalAdapterTypeOrm({ dataSourceToken: DataSource });
    const { app, tasks } = await testApp(
      {
        imports: [
          ClsModule.forRoot({ plugins: [new ClsPluginTransactional({ imports: [Database], adapter })] }),
          AsynqOutboxModule.forRootAsync({
            imports: [Database],
            inject: [DataSource],
            useFactory: (dataSource: DataSource) => ({ store: typeormOutbox(dataSource), relay: false }),
          }),
        ],
        providers: [Signup],
      },
      { transactions: clsTransactions() },
    );
    await app.init();
    await app.get(Signup).signUp(1);
    await app
      .get(Signup)
      .signUp(2)
      .catch(() => undefined);
    expect(tasks.enqueued(Mail)).toEqual([]);
    expect(await world.sql('SELECT state FROM asynq_outbox')).toEqual([{ state: 'new' }]);
    await app.get(AsynqOutbox).drain();
    expect(tasks.enqueued(Mail).map(({ payload }) => payload)).toEqual([{ n: 1 }]);
  });

  it('is bound to the transactions of typeorm-transactional, too, each its own', async () => {
    initializeTransactionalContext({ storageDriver: StorageDriver.ASYNC_LOCAL_STORAGE });
    const source = new DataSource({
      type: 'postgres',
      host: '127.0.0.1',
      port: server.port,
      username: 'postgres',
      database: 'postgres',
    });
    addTransactionalDataSource({ name: 'outbox', dataSource: source });
    await source.initialize();
    onTestFinished(async () => {
      deleteDataSourceByName('outbox');
      await source.destroy();
    });
    const { app, tasks } = await testApp(
      { imports: [AsynqOutboxModule.forRoot({ store: typeormOutbox(source), relay: false })] },
      { transactions: typeormTransactions({ dataSource: 'outbox' }) },
    );
    await app.init();
    const asynq = app.get(AsynqClient);
    const unit = <T>(work: () => Promise<T>, propagation: Propagation) =>
      runInTransaction(work, { connectionName: 'outbox', propagation });
    const whole = unit(async () => {
      await asynq.enqueue(Mail, { n: 1 });
      await unit(() => asynq.enqueue(Mail, { n: 2 }), Propagation.REQUIRES_NEW);
      await source.manager.transaction(() => asynq.enqueue(Mail, { n: 3 }));
      throw new Error('roll back');
    }, Propagation.REQUIRED);
    expect((await rejection(whole)).message).toBe('roll back');
    await app.get(AsynqOutbox).drain();
    expect(tasks.enqueued(Mail).map(({ payload }) => payload.n)).toEqual([2]);
  });

  it('shows a backlog, poisoned rows and a database that is away in health and metrics', async () => {
    const registry = new Registry();
    const metrics = AsynqMetricsModule.forRoot({ registry });
    const { app } = await testApp({
      imports: [metrics, AsynqOutboxModule.forRoot({ store: world.store, relay: false })],
    });
    await app.init();
    const [asynq, outbox, health] = [app.get(AsynqClient), app.get(AsynqOutbox), app.get(AsynqHealth)];
    const limits = { outbox: { maxAge: 1, maxPoisoned: 0 } };
    const lines = async () =>
      (await registry.metrics()).split('\n').filter((line) => line.startsWith('nestjs_asynq_outbox'));
    expect(await health.ready(limits)).toMatchObject({ status: 'up' });
    await world.transaction((tx) => outbox.within(tx, () => asynq.enqueueMany(Mail, [{ n: 1 }, { n: 2 }])));
    await world.sql(`UPDATE asynq_outbox SET state = 'poisoned' WHERE id = 2`);
    await world.sql(`UPDATE asynq_outbox SET created_at = created_at - 60000000`);
    expect((await health.ready(limits)).problems).toEqual([
      expect.stringMatching(
        /^the oldest of the rows of the outbox waits for [6-9]\d(\.\d)? s, longer than 0 s \(rows: 1\)$/,
      ),
      'poisoned rows of the outbox: 1, more than 0',
    ]);
    expect((await health.ready()).status).toBe('up');
    expect(await lines()).toEqual([
      'nestjs_asynq_outbox_up 1',
      'nestjs_asynq_outbox_rows{state="new"} 1',
      'nestjs_asynq_outbox_rows{state="taken"} 0',
      'nestjs_asynq_outbox_rows{state="poisoned"} 1',
      expect.stringMatching(/^nestjs_asynq_outbox_oldest_seconds [6-9]\d\./),
    ]);
    await server.kill();
    expect(await health.ready()).toMatchObject({
      status: 'down',
      redis: 'up',
      problems: ['the database of the outbox does not answer within 2 s'],
    });
    expect(await lines()).toEqual(['nestjs_asynq_outbox_up 0']);
    await server.start();
    await expect.poll(async () => (await health.ready()).status).toBe('up');
    expect(() => health.live()).not.toThrow();
    await expect(health.ready({ outbox: { maxAges: '1s' } as never })).rejects.toThrow('did you mean "maxAge"');
  });

  it('fails at boot without its tables, and refuses wrong options', async () => {
    await world.sql('DROP TABLE asynq_outbox');
    const { app } = await boot();
    expect(await rejection(app.init())).toMatchObject({ code: 'ASYNQ_INVALID_OPTION' });
    await createTables(world, PG);
    expect((await rejection(boot({ store: {} as never }))).message).toContain('AsynqOutboxModule option store must be');
    expect((await rejection(boot({ pollInterval: '11s' }))).message).toContain('from 1 ms to 10 s');
    const other = await boot({ connection: 'nobody' });
    expect((await rejection(other.app.init())).message).toContain('nobody');
    expect((await rejection(boot({ realy: true } as never))).message).toContain('did you mean "relay"');
    expect(() => pgOutbox({} as never)).toThrow('pgOutbox takes a Pool');
    expect(() => pgOutbox(new pg.Pool(), { table: 'x; DROP' })).toThrow('small letters');
    const sqlite = new DataSource({ type: 'sqljs' });
    expect(() => typeormOutbox(sqlite)).toThrow(
      'typeormOutbox knows the databases postgres, mysql, mariadb, better-sqlite3, not "sqljs"',
    );
  });
});
