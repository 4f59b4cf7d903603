import { Module } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { ClsPluginTransactional, Propagation, TransactionHost } from '@nestjs-cls/transactional';
import { TransactionalAdapterTypeOrm } from '@nestjs-cls/transactional-adapter-typeorm';
import * as fc from 'fast-check';
import { AsynqClient, AsynqModule, clsTransactions, defineTask } from 'nestjs-asynq';
import { AsynqOutbox, AsynqOutboxModule, outboxSchema, typeormOutbox } from 'nestjs-asynq/outbox';
import { AsynqTester, fakeDataSource, InMemoryOutbox } from 'nestjs-asynq/testing';
import { ClsModule } from 'nestjs-cls';
import { DataSource, type EntityManager } from 'typeorm';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { compile } from '../nest/support.js';
import { type DatabaseServer, startPostgres } from '../support/database-server.js';

/*
 * Transactions in each other, seen by `clsTransactions()` and named by `within`, of which some roll back: the tasks that arrive are those
 * of transactions that commit. The same on PostgreSQL and with the stand-ins for tests.
 */

const Mail = defineTask<{ n: number }>('mail');
const failed = new Error('roll back');

const KINDS = ['required', 'requiresNew', 'nested', 'notSupported', 'named', 'savepoint'] as const;

type Step = { readonly do: 'enqueue' | 'enqueueMany' } | Part;
interface Part {
  readonly do: (typeof KINDS)[number];
  readonly fails: boolean;
  readonly steps: readonly Step[];
}

const { steps } = fc.letrec<{ steps: Step[]; step: Step }>((tie) => ({
  steps: fc.array(tie('step'), { minLength: 1, maxLength: 3, depthIdentifier: 'parts' }),
  step: fc.oneof(
    { maxDepth: 4, depthIdentifier: 'parts' },
    fc.record({ do: fc.constantFrom('enqueue' as const, 'enqueueMany' as const) }),
    fc.record({ do: fc.constantFrom(...KINDS), fails: fc.boolean(), steps: tie('steps') }),
  ),
}));

/** A transaction, or a savepoint in one. */
interface Transaction {
  readonly outer?: Transaction | undefined;
  readonly fails: boolean;
}

const commits = (transaction: Transaction | undefined): boolean =>
  !transaction || (!transaction.fails && commits(transaction.outer));

/** What is around a step. */
interface Around {
  readonly seen?: Transaction | undefined;
  /** The innermost one that is named, and what was seen around it. */
  readonly named?: { readonly of: Transaction; readonly in: Transaction | undefined; readonly manager: EntityManager };
}

async function start(source: () => DataSource, isFake: boolean) {
  @Module({ providers: [{ provide: DataSource, useFactory: source }], exports: [DataSource] })
  class DatabaseModule {}
  const adapter = new TransactionalAdapterTypeOrm({ dataSourceToken: DataSource });
  const builder = Test.createTestingModule({
    imports: [
      DatabaseModule,
      ClsModule.forRoot({ plugins: [new ClsPluginTransactional({ imports: [DatabaseModule], adapter })] }),
      AsynqModule.forRoot({ connection: { host: 'localhost' }, transactions: clsTransactions() }),
      AsynqOutboxModule.forRootAsync({
        imports: [DatabaseModule],
        inject: [DataSource],
        useFactory: (dataSource: DataSource) => ({ store: typeormOutbox(dataSource), relay: false }),
      }),
    ],
  });
  if (isFake) builder.overrideProvider(AsynqOutbox).useClass(InMemoryOutbox);
  const app = await compile(builder);
  await app.init();
  return new World(
    app.get(AsynqClient),
    app.get(AsynqOutbox),
    app.get(TransactionHost),
    app.get(DataSource),
    AsynqTester.from(app),
  );
}

class World {
  private count = 0;
  private wanted: number[] = [];

  constructor(
    private readonly asynq: AsynqClient,
    private readonly outbox: AsynqOutbox,
    private readonly host: TransactionHost,
    private readonly source: DataSource,
    private readonly tasks: AsynqTester,
  ) {}

  async play(all: readonly Step[]): Promise<void> {
    this.tasks.clear();
    this.wanted = [];
    await this.run(all, {});
    await this.outbox.drain();
    const arrived = this.tasks.all(Mail).map(({ payload }) => payload.n);
    expect(arrived.toSorted((a, b) => a - b)).toEqual(this.wanted);
  }

  private async run(all: readonly Step[], around: Around): Promise<void> {
    for (const step of all) {
      if ('steps' in step) await this.begin(step, around);
      else await this.enqueue(step.do, around);
    }
  }

  private async enqueue(how: 'enqueue' | 'enqueueMany', { seen, named }: Around): Promise<void> {
    const n = ++this.count;
    if (commits(named && named.in === seen ? named.of : seen)) this.wanted.push(n);
    if (how === 'enqueue') await this.asynq.enqueue(Mail, { n });
    else await this.asynq.enqueueMany(Mail, [{ n }]);
  }

  private async begin(part: Part, around: Around): Promise<void> {
    const { fails } = part;
    const within = async (inner: Around): Promise<void> => {
      await this.run(part.steps, inner);
      if (fails) throw failed;
    };
    const { seen, named } = around;
    const { host, outbox, source } = this;
    const nameIt = (of: Transaction) => (manager: EntityManager) =>
      outbox.within(manager, () => within({ ...around, named: { of, in: seen, manager } }));
    const run = (): Promise<unknown> => {
      switch (part.do) {
        case 'required':
          return host.withTransaction(Propagation.Required, () => within({ ...around, seen: seen ?? { fails } }));
        case 'requiresNew':
          return host.withTransaction(Propagation.RequiresNew, () => within({ ...around, seen: { fails } }));
        case 'nested':
          return host.withTransaction(Propagation.Nested, () => within({ ...around, seen: { outer: seen, fails } }));
        case 'notSupported':
          return host.withTransaction(Propagation.NotSupported, () => within({ ...around, seen: undefined }));
        case 'named':
          return source.transaction(nameIt({ fails }));
        case 'savepoint':
          return named ? named.manager.transaction(nameIt({ outer: named.of, fails })) : Promise.resolve();
      }
    };
    await run().catch((error: unknown) => expect(error).toBe(failed));
  }
}

let server: DatabaseServer;
let source: DataSource;
beforeAll(async () => {
  server = await startPostgres();
  const options = {
    host: '127.0.0.1',
    port: server.port,
    username: 'postgres',
    database: 'postgres',
    extra: { max: 40 },
  };
  source = await new DataSource({ type: 'postgres', ...options }).initialize();
  for (const statement of outboxSchema('postgres')) await source.query(statement);
});
afterAll(async () => {
  await source.destroy();
  await server.stop();
});

it.each([
  ['PostgreSQL', () => source, false],
  ['stand-ins', () => fakeDataSource<DataSource>(), true],
] as const)('tasks arrive whose transaction commits, whatever is around it, on %s', async (_, of, isFake) => {
  const world = await start(of, isFake);
  await fc.assert(
    fc.asyncProperty(steps, (all) => world.play(all)),
    { numRuns: 60 },
  );
});
