import { Injectable, Module } from '@nestjs/common';
import {
  ClsPluginTransactional,
  NoOpTransactionalAdapter,
  Propagation,
  Transactional,
  TransactionHost,
} from '@nestjs-cls/transactional';
import { TransactionalAdapterTypeOrm } from '@nestjs-cls/transactional-adapter-typeorm';
import { ClsModule } from 'nestjs-cls';
import { AsynqClient, clsTransactions } from 'nestjs-asynq';
import { DataSource } from 'typeorm';
import { describe, expect, it } from 'vitest';
import { rejection, testApp } from '../nest/support.js';
import { describeTransactions, type Unit } from './suite.js';

const dataSource = new DataSource({ type: 'sqljs' });

@Module({
  providers: [
    {
      provide: DataSource,
      useFactory: async () => {
        if (!dataSource.isInitialized) await dataSource.initialize();
        return dataSource;
      },
    },
  ],
  exports: [DataSource],
})
class DatabaseModule {}

const cls = () =>
  ClsModule.forRoot({
    plugins: [
      new ClsPluginTransactional({
        imports: [DatabaseModule],
        adapter: new TransactionalAdapterTypeOrm({ dataSourceToken: DataSource }),
      }),
    ],
  });

@Injectable()
class ClsUnit implements Unit {
  @Transactional()
  required<T>(work: () => Promise<T>): Promise<T> {
    return work();
  }

  @Transactional(Propagation.NotSupported)
  notSupported<T>(work: () => Promise<T>): Promise<T> {
    return work();
  }

  @Transactional(Propagation.Nested)
  nested<T>(work: () => Promise<T>): Promise<T> {
    return work();
  }
}

describeTransactions('clsTransactions()', async () => {
  const { app, tasks } = await testApp({ imports: [cls()], providers: [ClsUnit] }, { transactions: clsTransactions() });
  const unit = app.get(ClsUnit);
  return { asynq: app.get(AsynqClient), tasks, unit, savepoint: (work) => unit.nested(work) };
});

describe('clsTransactions()', () => {
  it('works with the adapter that does nothing, for tests without a database', async () => {
    const plugin = new ClsPluginTransactional({ adapter: new NoOpTransactionalAdapter({ tx: {} }) });
    const { app, tasks } = await testApp(
      { imports: [ClsModule.forRoot({ plugins: [plugin] })] },
      { transactions: clsTransactions() },
    );
    const asynq = app.get(AsynqClient);
    await app.get(TransactionHost).withTransaction(async () => {
      await asynq.enqueue('t');
      expect(tasks.enqueued()).toEqual([]);
    });
    expect(tasks.enqueued()).toHaveLength(1);
  });

  it('fails at boot without the plugin', async () => {
    expect(await rejection(testApp({}, { transactions: clsTransactions() }))).toMatchObject({
      code: 'ASYNQ_INVALID_OPTION',
      message:
        'AsynqModule option transactions is clsTransactions(), but there is no TransactionHost; ' +
        'register the ClsPluginTransactional of @nestjs-cls/transactional in ClsModule',
    });
    const named = testApp({ imports: [cls()] }, { transactions: clsTransactions({ connectionName: 'billing' }) });
    expect((await rejection(named)).message).toContain('no TransactionHost with the connectionName "billing"');
  });

  it('refuses wrong options at once', () => {
    expect(() => clsTransactions({ connection: 'x' } as never)).toThrow('connectionName');
    expect(() => clsTransactions({ connectionName: '' })).toThrow('connectionName');
  });

  it('refuses another object as transactions', async () => {
    expect((await rejection(testApp({}, { transactions: {} as never }))).message).toContain(
      'AsynqModule option transactions must be clsTransactions(), typeormTransactions(), or an object with current()',
    );
  });
});
