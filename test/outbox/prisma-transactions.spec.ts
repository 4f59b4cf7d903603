import { AsynqClient, defineTask } from 'nestjs-asynq';
import { AsynqOutbox, AsynqOutboxModule, prismaOutbox } from 'nestjs-asynq/outbox';
import { expect, it, onTestFinished } from 'vitest';
import { rejection, testApp } from '../nest/support.js';
import { PRISMA_MARIADB, PRISMA_POSTGRES } from './library-stores.js';
import { prismaOnMariadb, prismaOnPostgres, type TestPrismaTransaction } from './prisma-client.js';
import { createTables } from './stores.js';

/* Transactions of Prisma that are named by hand, and end otherwise than by a commit. */

const Mail = defineTask<{ n: number }>('mail');

/** A transaction of Prisma, in which others can be savepoints. */
interface Transactional {
  $transaction<T>(work: (tx: TestPrismaTransaction & Transactional) => Promise<T>, options?: object): Promise<T>;
}

const DATABASES = [
  { kind: PRISMA_POSTGRES, connect: prismaOnPostgres },
  { kind: PRISMA_MARIADB, connect: prismaOnMariadb },
];

it.each(DATABASES)('tasks follow the transactions of $kind.name, whatever ends them', async ({ kind, connect }) => {
  const server = await kind.start();
  const client = connect(server.port);
  const world = await kind.open(server);
  onTestFinished(async () => {
    await world.close();
    await client.$disconnect();
    await server.stop();
  });
  await createTables(world, kind);
  const { app, tasks } = await testApp({
    imports: [AsynqOutboxModule.forRoot({ store: prismaOutbox(client), relay: false })],
  });
  await app.init();
  const [asynq, outbox] = [app.get(AsynqClient), app.get(AsynqOutbox)];
  const prisma = client as never as Transactional;
  const mail = (n: number) => asynq.enqueue(Mail, { n });
  const failed = new Error('roll back');

  // A transaction in another is a savepoint.
  await prisma.$transaction((tx) =>
    outbox.within(tx, async () => {
      await mail(1);
      const inner = tx.$transaction((savepoint) =>
        outbox.within(savepoint, async () => {
          await mail(-1);
          throw failed;
        }),
      );
      expect(await rejection(inner)).toBe(failed);
      await tx.$transaction((savepoint) => outbox.within(savepoint, () => mail(2)));
    }),
  );
  // One of the client is a transaction of its own, though it is begun in another.
  const outer = prisma.$transaction((tx) =>
    outbox.within(tx, async () => {
      await mail(-2);
      await prisma.$transaction((own) => outbox.within(own, () => mail(3)));
      throw failed;
    }),
  );
  expect(await rejection(outer)).toBe(failed);
  // Too late to be committed, and too late to be written.
  const late = prisma.$transaction(
    (tx) =>
      outbox.within(tx, async () => {
        await mail(-3);
        await expect.poll(() => mail(-4).catch((error: { code?: string }) => error.code)).toBe('P2028');
      }),
    { timeout: 100 },
  );
  expect(await rejection(late)).toMatchObject({ code: 'P2028' });
  // The client is no transaction.
  expect(await rejection(outbox.within(client, () => mail(-5)))).toMatchObject({ code: 'ASYNQ_INVALID_TASK' });

  await outbox.drain();
  expect(tasks.enqueued(Mail).map(({ payload }) => payload.n)).toEqual([1, 2, 3]);
});
