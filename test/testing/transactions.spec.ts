import { Module } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { AsynqClient, AsynqModule, clsTransactions, defineTask, typeormTransactions } from 'nestjs-asynq';
import { AsynqOutbox, AsynqOutboxModule, pgOutbox, typeormOutbox } from 'nestjs-asynq/outbox';
import { AsynqTester, fakeDataSource, InMemoryOutbox } from 'nestjs-asynq/testing';
import { DataSource } from 'typeorm';
import {
  addTransactionalDataSource,
  deleteDataSourceByName,
  initializeTransactionalContext,
  StorageDriver,
} from 'typeorm-transactional';
import { beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import { compile, rejection, testApp } from '../nest/support.js';
import { describeTransactions } from '../transactions/suite.js';
import { ClsUnit, clsOn, typeormUnit } from '../transactions/units.js';

const Mail = defineTask<{ n: number }>('mail');
const failed = new Error('roll back');

@Module({ providers: [{ provide: DataSource, useFactory: () => fakeDataSource() }], exports: [DataSource] })
class FakeDatabaseModule {}

const TypeormUnit = typeormUnit('fake');

beforeAll(() => void initializeTransactionalContext({ storageDriver: StorageDriver.ASYNC_LOCAL_STORAGE }));

describeTransactions('clsTransactions() on a fakeDataSource()', async () => {
  const { app, tasks } = await testApp(
    { imports: [clsOn(FakeDatabaseModule)], providers: [ClsUnit] },
    { transactions: clsTransactions() },
  );
  const unit = app.get(ClsUnit);
  return { asynq: app.get(AsynqClient), tasks, unit, savepoint: (work) => unit.nested(work) };
});

describeTransactions('typeormTransactions() on a fakeDataSource()', async () => {
  const source = fakeDataSource<DataSource>();
  addTransactionalDataSource({ name: 'fake', dataSource: source });
  onTestFinished(() => void deleteDataSourceByName('fake'));
  const transactions = typeormTransactions({ dataSource: 'fake' });
  const { app, tasks } = await testApp({ providers: [TypeormUnit] }, { transactions });
  return {
    asynq: app.get(AsynqClient),
    tasks,
    unit: app.get(TypeormUnit),
    savepoint: (work) => source.manager.transaction(work),
  };
});

describe('fakeDataSource', () => {
  it('has the methods that are given to it, in a transaction and outside', async () => {
    const query = vi.fn(async (text: string) => text);
    const source = fakeDataSource<DataSource>({ query });
    expect(await source.manager.query('a')).toBe('a');
    expect(await source.transaction('SERIALIZABLE', (manager) => manager.query('b'))).toBe('b');
    expect(query).toHaveBeenCalledTimes(2);
    await source.destroy();
  });

  it('has repositories, as @nestjs/typeorm asks for them', async () => {
    const repository = { find: async () => [{ id: 1 }] };
    const source = fakeDataSource<DataSource>({ query: async () => 'rows', getRepository: () => repository });
    expect(source.entityMetadatas.find(() => true)).toBeUndefined();
    expect(source.getRepository('User')).toBe(repository);
    expect(await source.transaction(async (manager) => manager.getRepository('User'))).toBe(repository);
    expect(await source.query('SELECT')).toBe('rows');
    expect(fakeDataSource<DataSource>().getRepository('User')).toEqual({});
  });

  it('has no connections, and says what to do', () => {
    expect(() => fakeDataSource<DataSource>().createQueryRunner()).toThrow(
      'there is no database behind a fakeDataSource(): override what uses its connections, such as AsynqOutbox by InMemoryOutbox',
    );
  });
});

describe('AsynqTester.transaction', () => {
  it('enqueues by its commit, and shows before what it holds', async () => {
    const { app, tasks } = await testApp({});
    const asynq = app.get(AsynqClient);
    const id = await tasks.transaction(async () => {
      const info = await asynq.enqueue(Mail, { n: 1 });
      await asynq.enqueueMany('other', [2, 3], { processIn: '1m' });
      expect(tasks.all()).toEqual([]);
      expect(tasks.uncommitted()).toMatchObject([
        { type: 'mail', state: 'pending', payload: { n: 1 } },
        { type: 'other', state: 'scheduled', payload: 2 },
        { type: 'other', state: 'scheduled', payload: 3 },
      ]);
      expect(tasks.uncommitted(Mail, { payload: { n: 1 } })).toHaveLength(1);
      expect(tasks.uncommitted('other', { payload: 3 })).toHaveLength(1);
      return info.id;
    });
    expect(tasks.uncommitted()).toEqual([]);
    expect(tasks.enqueued(Mail)).toMatchObject([{ id, payload: { n: 1 } }]);
    expect(tasks.enqueued('other')).toHaveLength(2);
  });

  it('drops what it holds when its work throws, at once or later', async () => {
    const { app, tasks } = await testApp({});
    const asynq = app.get(AsynqClient);
    const late = tasks.transaction(async () => {
      await asynq.enqueue(Mail, { n: 1 });
      throw failed;
    });
    expect(await rejection(late)).toBe(failed);
    const sync = tasks.transaction(() => {
      throw failed;
    });
    expect(await rejection(sync)).toBe(failed);
    expect([...tasks.uncommitted(), ...tasks.all()]).toEqual([]);
  });

  it('is a savepoint inside another one, and leaves calls outside alone', async () => {
    const { app, tasks } = await testApp({});
    const asynq = app.get(AsynqClient);
    const numbers = (list: { payload: { n: number } }[]) => list.map(({ payload }) => payload.n);
    let commit = (): void => undefined;
    const committed = new Promise<void>((resolve) => (commit = resolve));
    const transaction = tasks.transaction(async () => {
      await asynq.enqueue(Mail, { n: 1 });
      await tasks.transaction(() => asynq.enqueue(Mail, { n: 2 }));
      const undone = tasks.transaction(async () => {
        await asynq.enqueue(Mail, { n: 3 });
        throw failed;
      });
      expect(await rejection(undone)).toBe(failed);
      await committed;
    });
    await asynq.enqueue(Mail, { n: 4 });
    await vi.waitFor(() => expect(numbers(AsynqTester.from(app).uncommitted(Mail))).toEqual([1, 2]), { interval: 1 });
    expect(numbers(tasks.enqueued(Mail))).toEqual([4]);
    commit();
    await transaction;
    expect(numbers(tasks.enqueued(Mail))).toEqual([4, 1, 2]);
  });

  it('holds what transactions of the application have committed in it', async () => {
    const { app, tasks } = await testApp(
      { imports: [clsOn(FakeDatabaseModule)], providers: [ClsUnit] },
      { transactions: clsTransactions() },
    );
    const asynq = app.get(AsynqClient);
    const unit = app.get(ClsUnit);
    await tasks.transaction(async () => {
      await unit.required(() => asynq.enqueue(Mail, { n: 1 }));
      const undone = unit.required(async () => {
        await asynq.enqueue(Mail, { n: 2 });
        expect(tasks.uncommitted(Mail)).toHaveLength(2);
        throw failed;
      });
      expect(await rejection(undone)).toBe(failed);
      expect(tasks.uncommitted(Mail)).toMatchObject([{ payload: { n: 1 } }]);
      expect(tasks.all()).toEqual([]);
    });
    expect(tasks.all()).toMatchObject([{ payload: { n: 1 } }]);
    const whole = tasks.transaction(async () => {
      await unit.required(() => asynq.enqueue(Mail, { n: 3 }));
      throw failed;
    });
    expect(await rejection(whole)).toBe(failed);
    expect(tasks.all()).toHaveLength(1);
    expect(tasks.uncommitted()).toEqual([]);
  });

  it('shows what transactions of the application hold', async () => {
    const { app, tasks } = await testApp(
      { imports: [clsOn(FakeDatabaseModule)], providers: [ClsUnit] },
      { transactions: clsTransactions() },
    );
    await app.get(ClsUnit).required(async () => {
      await app.get(AsynqClient).enqueue(Mail, { n: 1 });
      expect(tasks.uncommitted(Mail)).toMatchObject([{ payload: { n: 1 } }]);
    });
    expect(tasks.uncommitted()).toEqual([]);
  });
});

describe('InMemoryOutbox', () => {
  const world = async () => {
    const pool = { query: vi.fn(), connect: vi.fn() };
    const app = await compile(
      Test.createTestingModule({
        imports: [
          AsynqModule.forRoot({ connection: { host: 'localhost' } }),
          AsynqOutboxModule.forRoot({ store: pgOutbox(pool as never) }),
        ],
      })
        .overrideProvider(AsynqOutbox)
        .useClass(InMemoryOutbox),
    );
    const [outbox, asynq, tasks] = [app.get(AsynqOutbox), app.get(AsynqClient), AsynqTester.from(app)];
    return { app, outbox, asynq, tasks, pool };
  };

  it('holds tasks until the commit, and asks no database', async () => {
    const { app, outbox, asynq, tasks, pool } = await world();
    await app.init();
    await outbox.within(undefined, async () => {
      await asynq.enqueue(Mail, { n: 1 });
      expect(tasks.uncommitted(Mail)).toHaveLength(1);
      expect(await outbox.counts()).toMatchObject({ fresh: 1 });
      expect(tasks.all()).toEqual([]);
    });
    await tasks.transaction(() => asynq.enqueue(Mail, { n: 2 }));
    await outbox.drain();
    expect(await outbox.retryPoisoned()).toBe(0);
    expect(await outbox.dropPoisoned([1])).toBe(0);
    expect([await outbox.senders(), await outbox.poisoned()]).toEqual([[], []]);
    expect(tasks.enqueued(Mail).map(({ payload }) => payload.n)).toEqual([1, 2]);
    expect(pool.query).not.toHaveBeenCalled();
    expect(pool.connect).not.toHaveBeenCalled();
  });

  it('holds tasks until the commit of a fakeDataSource(), also those beside the work that is named', async () => {
    const { app, outbox, asynq, tasks } = await world();
    await app.init();
    const source = fakeDataSource<DataSource>();
    const mail = (n: number) => asynq.enqueue(Mail, { n });
    const sent = () => tasks.all(Mail).map(({ payload }) => payload.n);
    const undone = source.transaction(async (manager) => {
      await outbox.within(manager, () => mail(1));
      expect(tasks.uncommitted(Mail)).toHaveLength(1);
      throw failed;
    });
    expect(await rejection(undone)).toBe(failed);
    expect(sent()).toEqual([]);
    await source.transaction(async (manager) => {
      await outbox.within(manager, () => mail(2));
      await mail(3); // is not named: at once
      expect(sent()).toEqual([3]);
      const savepoint = manager.transaction(async (nested) => {
        await outbox.within(nested, () => mail(4));
        throw failed;
      });
      expect(await rejection(savepoint)).toBe(failed);
      const caught = outbox.within(manager, () => mail(5).then(() => Promise.reject(failed)));
      expect(await rejection(caught)).toBe(failed); // its row is written, and the transaction commits
    });
    expect(sent()).toEqual([3, 2, 5]);
    const whole = tasks.transaction(async () => {
      await source.transaction((manager) => outbox.within(manager, () => mail(6)));
      expect(sent()).toHaveLength(3);
      throw failed;
    });
    expect(await rejection(whole)).toBe(failed);
    expect(sent()).toHaveLength(3);
    expect(tasks.uncommitted()).toEqual([]);
  });

  it('applies what a call says about repeats after the commit, as an outbox does', async () => {
    const { app, asynq, tasks } = await world();
    await app.init();
    const debounced = (n: number) => asynq.enqueue(Mail, { n }, { key: 'a', debounce: { wait: '1s' } });
    const { id } = await debounced(1);
    await tasks.transaction(async () => {
      await debounced(2);
      await debounced(3);
      expect(tasks.uncommitted(Mail)).toHaveLength(2);
      expect(tasks.enqueued(Mail)).toMatchObject([{ id, payload: { n: 1 } }]);
    });
    expect(tasks.enqueued(Mail)).toMatchObject([{ id, payload: { n: 3 }, state: 'scheduled' }]);
  });

  it('is ready when the application is', async () => {
    const { outbox } = await world();
    expect(() => outbox.within(undefined, () => undefined)).toThrow('await app.init() first');
  });

  it('stands in for a store on a fakeDataSource(), too', () => {
    expect(typeormOutbox(fakeDataSource<DataSource>())).toBeDefined();
  });
});
