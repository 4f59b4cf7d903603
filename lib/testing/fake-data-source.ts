import { TestingError } from '../errors.js';
import { Scope } from '../transactions/transactions.js';
import { noDatabase } from './testing.messages.js';

/** What TypeORM reports of a transaction. */
interface TransactionEvent {
  readonly queryRunner: FakeQueryRunner;
}

interface FakeQueryRunner {
  readonly isTransactionActive: boolean;
}

/** The innermost transaction or savepoint of each. */
const scopes = new WeakMap<FakeQueryRunner, Scope>();

/** The transaction of a {@link fakeDataSource} that is under way. @param tx what may be its EntityManager */
export function fakeTransactionOf(tx: unknown): Scope | undefined {
  const runner = (tx as { readonly queryRunner?: FakeQueryRunner } | undefined)?.queryRunner;
  return runner && scopes.get(runner);
}

interface Subscriber {
  afterTransactionStart?(event: TransactionEvent): unknown;
  afterTransactionCommit?(event: TransactionEvent): unknown;
  afterTransactionRollback?(event: TransactionEvent): unknown;
}

type Work = (manager: object) => Promise<unknown>;

/** Methods that a DataSource and its EntityManager share. */
interface Shared {
  query(...rest: unknown[]): unknown;
  getRepository(entity: unknown): object;
}

/**
 * A DataSource of TypeORM without a database: `@Transactional()` methods of `typeorm-transactional`, and of
 * `@nestjs-cls/transactional` with its adapter for TypeORM, commit when they return and roll back when they throw. `TypeOrmModule` of
 * `@nestjs/typeorm` starts on it, and its repositories are what `getRepository` returns.
 *
 * @example
 * .overrideProvider(DataSource).useValue(fakeDataSource<DataSource>({ query: async () => [] }))
 *
 * @param methods what the code under test calls on an EntityManager, or by these names on the DataSource: `query`, `getRepository`.
 * Without `getRepository` all repositories are empty objects
 */
export function fakeDataSource<Source extends object = object>(methods: object = {}): Source {
  return new FakeDataSource(methods) as object as Source;
}

class FakeDataSource {
  readonly isInitialized = true;
  readonly options = { type: 'postgres' };
  readonly subscribers: Subscriber[] = [];
  /** `@nestjs/typeorm` looks for trees in it. */
  readonly entityMetadatas: readonly object[] = [];
  readonly manager: object;

  constructor(private readonly methods: object) {
    this.manager = this.managerOf(undefined);
  }

  /** As of an EntityManager: the isolation level comes first, if there is one. */
  transaction(...rest: unknown[]): Promise<unknown> {
    return this.run({ isTransactionActive: true }, rest);
  }

  async initialize(): Promise<this> {
    return this;
  }

  async destroy(): Promise<void> {}

  query(...rest: unknown[]): unknown {
    return (this.manager as Shared).query(...rest);
  }

  getRepository(entity: unknown): object {
    return (this.manager as Shared).getRepository(entity);
  }

  createQueryRunner(): never {
    throw new TestingError(noDatabase);
  }

  private managerOf(queryRunner: FakeQueryRunner | undefined): object {
    const transaction = (...rest: unknown[]) => this.run(queryRunner ?? { isTransactionActive: true }, rest);
    const manager = Object.assign(Object.create(this.methods) as object, { queryRunner, transaction });
    return 'getRepository' in manager ? manager : Object.assign(manager, { getRepository: () => ({}) });
  }

  /** A transaction of a connection; a savepoint, when there is one on it. */
  private async run(queryRunner: FakeQueryRunner, rest: readonly unknown[]): Promise<unknown> {
    const work = rest.find((one): one is Work => typeof one === 'function')!;
    const event = { queryRunner };
    const outer = scopes.get(queryRunner);
    const scope = new Scope(() => undefined, outer);
    scopes.set(queryRunner, scope);
    const end = (): unknown => (outer ? scopes.set(queryRunner, outer) : scopes.delete(queryRunner));
    for (const subscriber of this.subscribers) await subscriber.afterTransactionStart?.(event);
    let result: unknown;
    try {
      result = await work(this.managerOf(queryRunner));
    } catch (error) {
      end();
      scope.rollback();
      for (const subscriber of this.subscribers) await subscriber.afterTransactionRollback?.(event);
      throw error;
    }
    end();
    await scope.commit();
    for (const subscriber of this.subscribers) await subscriber.afterTransactionCommit?.(event);
    return result;
  }
}
