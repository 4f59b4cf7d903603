import { Injectable, Module } from '@nestjs/common';
import { ClsPluginTransactional, Transactional, TransactionHost } from '@nestjs-cls/transactional';
import { TransactionalAdapterDrizzleOrm } from '@nestjs-cls/transactional-adapter-drizzle-orm';
import { sql } from 'drizzle-orm';
import { drizzle } from 'drizzle-orm/node-postgres';
import { ClsModule } from 'nestjs-cls';
import { AsynqClient, clsTransactions, defineTask } from 'nestjs-asynq';
import { AsynqOutbox, AsynqOutboxModule, drizzleOutbox } from 'nestjs-asynq/outbox';
import pg from 'pg';
import { expect, it, onTestFinished } from 'vitest';
import { rejection, testApp } from '../nest/support.js';
import { createTables, local, PG } from './stores.js';

const Mail = defineTask<{ email: string }>('mail');
const DB = 'DRIZZLE';

it('writes rows in the transactions of Drizzle that its adapter for @nestjs-cls makes', async () => {
  const server = await PG.start();
  const pool = new pg.Pool({ ...local, port: server.port, user: 'postgres', database: 'postgres' });
  const db = drizzle(pool);
  const world = await PG.open(server);
  onTestFinished(async () => {
    await world.close();
    await pool.end();
    await server.stop();
  });
  await createTables(world, PG);
  await world.sql('CREATE TABLE users (email text)');

  @Injectable()
  class Signup {
    constructor(
      private readonly asynq: AsynqClient,
      private readonly host: TransactionHost<TransactionalAdapterDrizzleOrm<typeof db>>,
    ) {}

    @Transactional()
    async signUp(email: string, fails: boolean) {
      await this.host.tx.execute(sql`INSERT INTO users (email) VALUES (${email})`);
      await this.asynq.enqueue(Mail, { email });
      if (fails) throw new Error('roll back');
    }
  }
  @Module({ providers: [{ provide: DB, useValue: db }], exports: [DB] })
  class Database {}
  const adapter = new TransactionalAdapterDrizzleOrm({ drizzleInstanceToken: DB });
  const { app, tasks } = await testApp(
    {
      imports: [
        ClsModule.forRoot({ plugins: [new ClsPluginTransactional({ imports: [Database], adapter })] }),
        AsynqOutboxModule.forRoot({ store: drizzleOutbox(db), relay: false }),
      ],
      providers: [Signup],
    },
    { transactions: clsTransactions() },
  );
  await app.init();
  await app.get(Signup).signUp('ann@example.com', false);
  expect((await rejection(app.get(Signup).signUp('bob@example.com', true))).message).toContain('roll back');
  expect(tasks.enqueued()).toEqual([]);
  await app.get(AsynqOutbox).drain();
  expect(tasks.enqueued(Mail).map(({ payload }) => payload)).toEqual([{ email: 'ann@example.com' }]);
  expect(await world.sql('SELECT email FROM users')).toEqual([{ email: 'ann@example.com' }]);
});
