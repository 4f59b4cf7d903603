import { InvalidOptionError, InvalidTaskError } from '../../errors.js';
import { describe } from '../../validation.js';
import { perform, type RunSql, type SqlDatabase, type SqlRow, type Work } from '../sql/database.js';
import type { SqlDialect } from '../sql/dialect.js';
import { MYSQL } from '../sql/mysql.js';
import { POSTGRES } from '../sql/postgres.js';
import { SqlStore } from '../sql/sql-store.js';
import type { OutboxStore } from '../store.js';
import { hasMethods } from './methods.js';
import { listenByPg, type ListeningClient } from './pg.js';
import { type SqliteConnection, SqliteDatabase } from './sqlite.js';
import { readStoreOptions, type StoreOptions } from './store-options.js';

/** A QueryRunner of TypeORM. */
export interface TypeormQueryRunner {
  connect(): Promise<unknown>;
  query(text: string, values?: unknown[]): Promise<unknown>;
  startTransaction(isolation?: 'READ COMMITTED'): Promise<void>;
  commitTransaction(): Promise<void>;
  rollbackTransaction(): Promise<void>;
  release(): Promise<void>;
}

/** A DataSource of TypeORM. */
export interface TypeormDataSource {
  readonly options: { readonly type: string };
  createQueryRunner(): TypeormQueryRunner;
  /** With SQLite, what has the connection. */
  readonly driver?: unknown;
}

const SQLITE_TYPE = 'better-sqlite3';

interface SqliteDriver {
  readonly databaseConnection: SqliteConnection;
}

const DIALECTS: Readonly<Record<string, SqlDialect>> = { postgres: POSTGRES, mysql: MYSQL, mariadb: MYSQL };

/**
 * The outbox in the database of a TypeORM DataSource: PostgreSQL, MySQL, MariaDB, or a file of SQLite by
 * `better-sqlite3`. A transaction is its EntityManager or QueryRunner.
 *
 * @example
 * AsynqOutboxModule.forRootAsync({
 *   inject: [DataSource],
 *   useFactory: (dataSource: DataSource) => ({ store: typeormOutbox(dataSource) }),
 * })
 *
 * @throws InvalidOptionError when the database is another one
 */
export function typeormOutbox(dataSource: TypeormDataSource, options?: StoreOptions): OutboxStore {
  if (!hasMethods(dataSource, ['createQueryRunner'])) throw new InvalidOptionError('typeormOutbox takes a DataSource');
  const { type } = dataSource.options;
  const table = readStoreOptions(options, 'typeormOutbox');
  if (type === SQLITE_TYPE) {
    // TypeORM has one connection there, for all transactions.
    const connection = (): SqliteConnection => (dataSource.driver as SqliteDriver).databaseConnection;
    return new SqlStore(new SqliteDatabase(connection, runnerOfTx), table);
  }
  const dialect = DIALECTS[type];
  if (!dialect) {
    throw new InvalidOptionError(
      `typeormOutbox knows the databases ${[...Object.keys(DIALECTS), SQLITE_TYPE].join(', ')}, not ${describe(type)}: its relay needs a connection of its own`,
    );
  }
  return new SqlStore(new TypeormDatabase(dataSource, dialect), table);
}

const runnerOfTypeorm =
  (runner: Pick<TypeormQueryRunner, 'query'>): RunSql =>
  async ({ text, values }) => {
    const rows = await runner.query(text, [...values]);
    return Array.isArray(rows) ? (rows as SqlRow[]) : [];
  };

function runnerOfTx(tx: unknown): RunSql {
  if (hasMethods(tx, ['query'])) return runnerOfTypeorm(tx as TypeormQueryRunner);
  throw new InvalidTaskError('typeormOutbox needs the EntityManager or the QueryRunner of the transaction');
}

class TypeormDatabase implements SqlDatabase {
  readonly listen: SqlDatabase['listen'];

  constructor(
    private readonly dataSource: TypeormDataSource,
    readonly dialect: SqlDialect,
  ) {
    if (dialect === POSTGRES) this.listen = (...args) => this.listenOnPostgres(...args);
  }

  runnerOf(tx: unknown): RunSql {
    return runnerOfTx(tx);
  }

  async transaction<T>(work: Work<T>): Promise<T> {
    const runner = this.dataSource.createQueryRunner();
    try {
      await runner.startTransaction('READ COMMITTED');
      const result = await perform(work, runnerOfTypeorm(runner));
      await runner.commitTransaction();
      return result;
    } catch (error) {
      await runner.rollbackTransaction().catch(() => undefined);
      throw error;
    } finally {
      await runner.release();
    }
  }

  private async listenOnPostgres(
    channel: string,
    onRows: () => void,
    onLost: () => void,
  ): Promise<() => Promise<void>> {
    const runner = this.dataSource.createQueryRunner();
    const client = (await runner.connect()) as ListeningClient;
    // A runner whose connection is lost has given it back by itself.
    return listenByPg(client, () => void runner.release(), channel, onRows, onLost);
  }
}
