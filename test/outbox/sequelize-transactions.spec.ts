import { Injectable, Module } from '@nestjs/common';
import { createNamespace, type Namespace } from 'cls-hooked';
import { AsynqClient, sequelizeTransactions } from 'nestjs-asynq';
import { AsynqOutbox, AsynqOutboxModule, sequelizeOutbox } from 'nestjs-asynq/outbox';
import { Sequelize, type Transaction } from 'sequelize';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { rejection, testApp } from '../nest/support.js';
import type { DatabaseServer } from '../support/database-server.js';
import { describeTransactions, type Unit } from '../transactions/suite.js';
import { SEQUELIZE_MARIADB, SEQUELIZE_POSTGRES, sequelizeOn } from './library-stores.js';
import { createTables, type StoreWorld } from './stores.js';

let server: DatabaseServer;
let sequelize: Sequelize;
beforeAll(async () => {
  server = await SEQUELIZE_POSTGRES.start();
});
afterAll(() => server.stop());

/** `useCLS` is for all that are made after it: each test of what is without comes before. */
const withCls = (): void => void Sequelize.useCLS(createNamespace('sequelize-transactions'));

const namespace = (): Namespace<{ transaction: Transaction | null }> =>
  (Sequelize as unknown as Readonly<Record<'_cls', Namespace<{ transaction: Transaction | null }>>>)['_cls'];
const around = (): Transaction | undefined => namespace().get('transaction') ?? undefined;

@Injectable()
class SequelizeUnit implements Unit {
  required<T>(work: () => Promise<T>): Promise<T> {
    return around() ? work() : sequelize.transaction(() => work());
  }

  notSupported<T>(work: () => Promise<T>): Promise<T> {
    return namespace().runAndReturn(() => {
      namespace().set('transaction', null);
      return work();
    });
  }
}

/** The Sequelize of an application, as @nestjs/sequelize provides it. */
@Module({ providers: [{ provide: Sequelize, useFactory: () => sequelize }], exports: [Sequelize] })
class Database {}

describe('sequelizeTransactions()', () => {
  const boot = (token: unknown) =>
    rejection(testApp({ imports: [Database] }, { transactions: sequelizeTransactions({ token }) }));

  it('fails at boot when its transactions cannot be seen', async () => {
    sequelize = sequelizeOn(SEQUELIZE_POSTGRES, server.port);
    expect((await boot(Sequelize)).message).toContain('call Sequelize.useCLS(namespace) before the Sequelize is made');
    expect((await boot('nobody')).message).toContain('Nest has no provider of its token');
    await sequelize.close();
  });

  it('refuses wrong options at once', () => {
    expect(() => sequelizeTransactions({} as never)).toThrow('sequelizeTransactions needs the option token');
    expect(() => sequelizeTransactions({ tokn: Sequelize } as never)).toThrow('did you mean "token"');
  });
});

describe('with CLS', () => {
  beforeAll(() => {
    withCls();
    sequelize = sequelizeOn(SEQUELIZE_POSTGRES, server.port);
  });
  afterAll(() => sequelize.close());

  describeTransactions('sequelizeTransactions()', async () => {
    const transactions = sequelizeTransactions({ token: Sequelize });
    const { app, tasks } = await testApp({ imports: [Database], providers: [SequelizeUnit] }, { transactions });
    const savepoint = <T>(work: () => Promise<T>): Promise<T> =>
      sequelize.transaction({ transaction: around()! }, () => work());
    return { asynq: app.get(AsynqClient), tasks, unit: app.get(SequelizeUnit), savepoint };
  });

  it.each([SEQUELIZE_POSTGRES, SEQUELIZE_MARIADB])('rows are written in them: $name', async (kind) => {
    const own = kind === SEQUELIZE_POSTGRES ? undefined : await kind.start();
    const { port } = own ?? server;
    const before = sequelize;
    const world: StoreWorld = await kind.open(own ?? server);
    try {
      sequelize = sequelizeOn(kind, port);
      await createTables(world, kind);
      const { app, tasks } = await testApp(
        {
          imports: [Database, AsynqOutboxModule.forRoot({ store: sequelizeOutbox(sequelize), relay: false })],
        },
        { transactions: sequelizeTransactions({ token: Sequelize }) },
      );
      await app.init();
      const asynq = app.get(AsynqClient);
      await sequelize.transaction(() => asynq.enqueue('mail', { n: 1 }));
      const failed = sequelize.transaction(async () => {
        await asynq.enqueue('mail', { n: 2 });
        throw new Error('roll back');
      });
      expect((await rejection(failed)).message).toBe('roll back');
      expect(tasks.enqueued('mail')).toEqual([]);
      expect(await app.get(AsynqOutbox).counts()).toMatchObject({ fresh: 1 });
      await app.get(AsynqOutbox).drain();
      expect(tasks.enqueued('mail').map(({ payload }) => payload)).toEqual([{ n: 1 }]);
      await sequelize.close();
    } finally {
      sequelize = before;
      await world.close();
      await own?.stop();
    }
  });
});
