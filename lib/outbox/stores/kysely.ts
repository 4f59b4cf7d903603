import { InvalidOptionError, InvalidTaskError } from '../../errors.js';
import { perform, type RunSql, type SqlDatabase, type SqlRow, type Work } from '../sql/database.js';
import type { SqlDialect } from '../sql/dialect.js';
import { MYSQL } from '../sql/mysql.js';
import { POSTGRES } from '../sql/postgres.js';
import { SqlStore } from '../sql/sql-store.js';
import { SQLITE } from '../sql/sqlite.js';
import type { OutboxStore } from '../store.js';
import { hasMethods } from './methods.js';
import { readStoreOptions, type StoreOptions } from './store-options.js';

/** What runs statements: a Kysely, or a transaction of it. */
export interface KyselyRunner {
  executeQuery(query: never): Promise<{ readonly rows: unknown[] }>;
}

/** A Kysely. */
export interface KyselyLike extends KyselyRunner {
  getExecutor(): { readonly adapter: object };
  transaction(): KyselyTransactionBuilder;
}

export interface KyselyTransactionBuilder {
  setIsolationLevel(level: 'read committed'): KyselyTransactionBuilder;
  execute<T>(work: (trx: KyselyRunner) => Promise<T>): Promise<T>;
}

/** By the adapter of Kysely's dialect. */
const DIALECTS: Readonly<Record<string, SqlDialect>> = {
  PostgresAdapter: POSTGRES,
  MysqlAdapter: MYSQL,
  SqliteAdapter: SQLITE,
};

/**
 * The outbox in the database of a Kysely: PostgreSQL, MySQL, MariaDB or SQLite. A transaction is a Kysely transaction.
 * With SQLite, the relay takes its turn on the only connection.
 *
 * @example
 * AsynqOutboxModule.forRoot({ store: kyselyOutbox(db) })
 *
 * @throws InvalidOptionError when the database is another one
 */
export function kyselyOutbox(db: KyselyLike, options?: StoreOptions): OutboxStore {
  if (!hasMethods(db, ['executeQuery', 'getExecutor', 'transaction'])) {
    throw new InvalidOptionError('kyselyOutbox takes a Kysely');
  }
  const { name } = db.getExecutor().adapter.constructor;
  const dialect = DIALECTS[name];
  if (!dialect) {
    throw new InvalidOptionError(
      `kyselyOutbox knows the dialects of PostgreSQL, MySQL and SQLite, not that of ${name}`,
    );
  }
  return new SqlStore(new KyselyDatabase(db, dialect), readStoreOptions(options, 'kyselyOutbox'));
}

/** A query as `CompiledQuery.raw` of Kysely makes it. */
const runnerOfKysely =
  (runner: KyselyRunner): RunSql =>
  async ({ text, values }) => {
    const query = { kind: 'RawNode', sqlFragments: [text], parameters: [] };
    const compiled = { sql: text, parameters: values, query, queryId: { queryId: 'asynq-outbox' } };
    return (await runner.executeQuery(compiled as never)).rows as SqlRow[];
  };

class KyselyDatabase implements SqlDatabase {
  constructor(
    private readonly db: KyselyLike,
    readonly dialect: SqlDialect,
  ) {}

  runnerOf(tx: unknown): RunSql {
    if (hasMethods(tx, ['executeQuery']) && (tx as { isTransaction?: unknown }).isTransaction === true) {
      return runnerOfKysely(tx as KyselyRunner);
    }
    throw new InvalidTaskError('kyselyOutbox needs the transaction of Kysely, as db.transaction().execute() gives it');
  }

  transaction<T>(work: Work<T>): Promise<T> {
    const builder = this.db.transaction();
    const transaction = this.dialect === SQLITE ? builder : builder.setIsolationLevel('read committed');
    return transaction.execute((trx) => perform(work, runnerOfKysely(trx)));
  }
}
