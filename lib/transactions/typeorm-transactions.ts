import { InvalidOptionError } from '../errors.js';
import { rejectUnknownKeys, requireNonBlank, requireObject } from '../validation.js';
import { loadPeer, Scope, type Transactions, type TransactionScope } from './transactions.js';

export interface TypeormTransactionsOptions {
  /** The name that `addTransactionalDataSource` got. Default `'default'`. */
  dataSource?: string;
}

/** The part of TypeORM that is used here. */
interface QueryRunner {
  readonly isTransactionActive: boolean;
}
interface Manager {
  readonly queryRunner?: QueryRunner;
}
interface DataSource {
  readonly manager: Manager;
  readonly subscribers: object[];
  readonly isInitialized: boolean;
}
interface TransactionEvent {
  readonly queryRunner: QueryRunner;
}

/**
 * The transactions of `typeorm-transactional`, and what is nested in them by TypeORM's own savepoints.
 *
 * @example
 * AsynqModule.forRoot({ connection, transactions: typeormTransactions() })
 *
 * @throws InvalidOptionError when an option is invalid; at boot when there is no such data source
 */
export function typeormTransactions(options: TypeormTransactionsOptions = {}): Transactions {
  requireObject(options, 'options of typeormTransactions', InvalidOptionError);
  rejectUnknownKeys(options, ['dataSource'], 'option of typeormTransactions', InvalidOptionError);
  const { dataSource = 'default' } = options;
  return new TypeormTransactions(
    requireNonBlank(dataSource, 'typeormTransactions option dataSource', InvalidOptionError),
  );
}

class TypeormTransactions implements Transactions {
  /** The innermost transaction or savepoint of each connection. */
  private readonly scopes = new WeakMap<QueryRunner, Scope>();
  private sourceOf: ((name: string) => unknown) | undefined;
  private source: DataSource | undefined;

  constructor(private readonly name: string) {}

  async load(): Promise<void> {
    const load = () => import('typeorm-transactional');
    this.sourceOf = (await loadPeer(load, 'typeormTransactions()', 'typeorm-transactional')).getDataSourceByName;
  }

  attach(): void {
    const source = this.findSource();
    if (source === this.source) return;
    const { scopes } = this;
    const end = (queryRunner: QueryRunner): Scope | undefined => {
      const scope = scopes.get(queryRunner);
      if (scope?.outer) scopes.set(queryRunner, scope.outer);
      else scopes.delete(queryRunner);
      return scope;
    };
    source.subscribers.push({
      afterTransactionStart: ({ queryRunner }: TransactionEvent): void => {
        scopes.set(queryRunner, new Scope(() => source.manager, scopes.get(queryRunner)));
      },
      afterTransactionCommit: ({ queryRunner }: TransactionEvent) => end(queryRunner)?.commit(),
      afterTransactionRollback: ({ queryRunner }: TransactionEvent) => end(queryRunner)?.rollback(),
    });
    this.source = source;
  }

  current(): TransactionScope | undefined {
    // typeorm-transactional makes `manager` that of the transaction around the call.
    const runner = this.source?.manager.queryRunner;
    return runner?.isTransactionActive ? this.scopes.get(runner) : undefined;
  }

  private findSource(): DataSource {
    const source = this.sourceOf!(this.name) as DataSource | undefined;
    if (!source) {
      throw new InvalidOptionError(
        `AsynqModule option transactions is typeormTransactions(), but typeorm-transactional has no data source "${this.name}"; ` +
          'call addTransactionalDataSource before the application starts',
      );
    }
    if (!source.isInitialized) {
      throw new InvalidOptionError(
        `the data source "${this.name}" is not initialized when the application starts, so that its transactions cannot be seen; ` +
          'initialize it in the factory of its provider',
      );
    }
    if (Object.getOwnPropertyDescriptor(source, 'manager')?.get) return source;
    throw new InvalidOptionError(
      `the data source "${this.name}" was added with patch: false, so that its transactions cannot be seen; leave patch out`,
    );
  }
}
