import { Injectable, Module } from '@nestjs/common';
import { ClsPluginTransactional, Propagation, Transactional, TransactionHost } from '@nestjs-cls/transactional';
import { TransactionalAdapterPrisma } from '@nestjs-cls/transactional-adapter-prisma';
import { ClsModule } from 'nestjs-cls';
import { AsynqClient, clsTransactions, defineTask } from 'nestjs-asynq';
import { AsynqOutbox, AsynqOutboxModule, prismaOutbox } from 'nestjs-asynq/outbox';
import { expect, it, onTestFinished } from 'vitest';
import { rejection, testApp } from '../nest/support.js';
import { PRISMA_MARIADB, PRISMA_POSTGRES } from './library-stores.js';
import { prismaOnMariadb, prismaOnPostgres } from './prisma-client.js';
import { createTables } from './stores.js';

const Mail = defineTask<{ email: string }>('mail');
const PRISMA = 'PRISMA';

const DATABASES = [
  { kind: PRISMA_POSTGRES, connect: prismaOnPostgres, sqlFlavor: 'postgresql' as const },
  { kind: PRISMA_MARIADB, connect: prismaOnMariadb, sqlFlavor: 'mysql' as const },
];

it.each(DATABASES)(
  'writes rows in the transactions of $kind.name that its adapter for @nestjs-cls makes',
  async ({ kind, connect, sqlFlavor }) => {
    const server = await kind.start();
    const prisma = connect(server.port);
    const world = await kind.open(server);
    onTestFinished(async () => {
      await world.close();
      await prisma.$disconnect();
      await server.stop();
    });
    await createTables(world, kind);
    await world.sql('CREATE TABLE users (email varchar(100))');

    @Injectable()
    class Signup {
      constructor(
        private readonly asynq: AsynqClient,
        private readonly host: TransactionHost,
      ) {}

      @Transactional()
      async signUp(email: string, fails: boolean) {
        await (this.host.tx as typeof prisma).$executeRawUnsafe(`INSERT INTO users (email) VALUES ('${email}')`);
        await this.asynq.enqueue(Mail, { email });
        await this.invite(`friend of ${email}`).catch(() => undefined);
        if (fails) throw new Error('roll back');
      }

      /** A savepoint. */
      @Transactional(Propagation.Nested)
      async invite(email: string) {
        await this.asynq.enqueue(Mail, { email });
        throw new Error('roll back to the savepoint');
      }
    }
    @Module({ providers: [{ provide: PRISMA, useValue: prisma }], exports: [PRISMA] })
    class Database {}
    const adapter = new TransactionalAdapterPrisma({ prismaInjectionToken: PRISMA, sqlFlavor });
    const { app, tasks } = await testApp(
      {
        imports: [
          ClsModule.forRoot({ plugins: [new ClsPluginTransactional({ imports: [Database], adapter })] }),
          AsynqOutboxModule.forRoot({ store: prismaOutbox(prisma), relay: false }),
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
  },
);
