import { Injectable, Module, ParseIntPipe } from '@nestjs/common';
import { ClsPluginTransactional, NoOpTransactionalAdapter, TransactionHost } from '@nestjs-cls/transactional';
import { ClsModule } from 'nestjs-cls';
import { AsynqClient, clsTransactions, InjectTasks, Payload, TaskHandler, type TasksOf } from 'nestjs-asynq';
import { DataSource } from 'typeorm';
import { describe, expect, it } from 'vitest';
import { rejection, testApp } from '../nest/support.js';
import { describeTransactions } from './suite.js';
import { ClsUnit, clsOn } from './units.js';

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

describeTransactions('clsTransactions()', async () => {
  const { app, tasks } = await testApp(
    { imports: [clsOn(DatabaseModule)], providers: [ClsUnit] },
    { transactions: clsTransactions() },
  );
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

  it('holds tasks that are called like methods, also those whose payload is checked first', async () => {
    class Mails {
      @TaskHandler('plain')
      plain(_to: string) {}
      @TaskHandler('checked', { validate: 'both' })
      checked(@Payload(ParseIntPipe) _user: number) {}
    }
    @Injectable()
    class Signup {
      constructor(@InjectTasks(Mails) readonly mails: TasksOf<Mails>) {}
    }
    const { app, tasks } = await testApp(
      { imports: [clsOn(DatabaseModule)], providers: [ClsUnit, Signup] },
      { transactions: clsTransactions() },
    );
    const { mails } = app.get(Signup);
    const signUp = (ends: () => void) => async () => {
      await mails.plain('ann');
      await mails.with({ maxRetry: 1 }).checked(42);
      expect(tasks.all()).toEqual([]);
      ends();
    };
    const unit = app.get(ClsUnit);
    const undo = () => {
      throw new Error('undone');
    };
    expect((await rejection(unit.required(signUp(undo)))).message).toBe('undone');
    expect(tasks.all()).toEqual([]);
    await unit.required(signUp(() => undefined));
    expect(tasks.all()).toMatchObject([
      { type: 'plain', payload: 'ann' },
      { type: 'checked', maxRetry: 1 },
    ]);
  });

  it('fails at boot without the plugin', async () => {
    expect(await rejection(testApp({}, { transactions: clsTransactions() }))).toMatchObject({
      code: 'ASYNQ_INVALID_OPTION',
      message:
        'AsynqModule option transactions is clsTransactions(), but there is no TransactionHost; ' +
        'register the ClsPluginTransactional of @nestjs-cls/transactional in ClsModule',
    });
    const named = testApp(
      { imports: [clsOn(DatabaseModule)] },
      { transactions: clsTransactions({ connectionName: 'billing' }) },
    );
    expect((await rejection(named)).message).toContain('no TransactionHost with the connectionName "billing"');
  });

  it('refuses wrong options at once', () => {
    expect(() => clsTransactions({ connection: 'x' } as never)).toThrow('connectionName');
    expect(() => clsTransactions({ connectionName: '' })).toThrow('connectionName');
  });

  it('refuses another object as transactions', async () => {
    expect((await rejection(testApp({}, { transactions: {} as never }))).message).toContain(
      'AsynqModule option transactions must be clsTransactions(), typeormTransactions(), sequelizeTransactions({ token }), ' +
        'or an object with current()',
    );
  });
});
