import { TestingError } from '../errors.js';
import { noDatabase } from './testing.messages.js';

/** What TypeORM reports of a transaction. */
interface TransactionEvent {
  readonly queryRunner: object;
}

interface Subscriber {
  afterTransactionStart?(event: TransactionEvent): unknown;
  afterTransactionCommit?(event: TransactionEvent): unknown;
  afterTransactionRollback?(event: TransactionEvent): unknown;
}

type Work = (manager: object) => Promise<unknown>;

/**
 * A DataSource of TypeORM without a database: `@Transactional()` methods of `typeorm-transactional`, and of
 * `@nestjs-cls/transactional` with its adapter for TypeORM, commit when they return and roll back when they throw.
 *
 * @example
 * .overrideProvider(DataSource).useValue(fakeDataSource<DataSource>({ query: async () => [] }))
 *
 * @param methods what the code under test calls on an EntityManager
 */
export function fakeDataSource<Source extends object = object>(methods: object = {}): Source {
  return new FakeDataSource(methods) as object as Source;
}

class FakeDataSource {
  readonly isInitialized = true;
  readonly options = { type: 'postgres' };
  readonly subscribers: Subscriber[] = [];
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

  createQueryRunner(): never {
    throw new TestingError(noDatabase);
  }

  private managerOf(queryRunner: { isTransactionActive: boolean } | undefined): object {
    const transaction = (...rest: unknown[]) => this.run(queryRunner ?? { isTransactionActive: true }, rest);
    return Object.assign(Object.create(this.methods) as object, { queryRunner, transaction });
  }

  /** A transaction of a connection; a savepoint, when there is one on it. */
  private async run(queryRunner: { isTransactionActive: boolean }, rest: readonly unknown[]): Promise<unknown> {
    const work = rest.find((one): one is Work => typeof one === 'function')!;
    const event = { queryRunner };
    for (const subscriber of this.subscribers) await subscriber.afterTransactionStart?.(event);
    let result: unknown;
    try {
      result = await work(this.managerOf(queryRunner));
    } catch (error) {
      for (const subscriber of this.subscribers) await subscriber.afterTransactionRollback?.(event);
      throw error;
    }
    for (const subscriber of this.subscribers) await subscriber.afterTransactionCommit?.(event);
    return result;
  }
}
