import { InvalidOptionError, InvalidTaskError } from '../../errors.js';
import { describe } from '../../validation.js';
import { perform, type RunSql, type SqlDatabase, type SqlRow, type Work } from '../sql/database.js';
import type { SqlDialect } from '../sql/dialect.js';
import { MYSQL } from '../sql/mysql.js';
import { POSTGRES } from '../sql/postgres.js';
import { SqlStore } from '../sql/sql-store.js';
import type { OutboxStore } from '../store.js';
import { listenByPg, type ListeningClient } from './listen.js';
import { hasMethods } from './methods.js';
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
  readonly subscribers: object[];
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
  const settings = readStoreOptions(options, 'typeormOutbox');
  if (type === SQLITE_TYPE) {
    // TypeORM has one connection there, for all transactions.
    const connection = (): SqliteConnection => (dataSource.driver as SqliteDriver).databaseConnection;
    const commits = new Commits(dataSource);
    const database = new SqliteDatabase(connection, runnerOfTx, (tx, work) => commits.after(tx, work));
    return new SqlStore(database, settings);
  }
  const dialect = DIALECTS[type];
  if (!dialect) {
    throw new InvalidOptionError(
      `typeormOutbox knows the databases ${[...Object.keys(DIALECTS), SQLITE_TYPE].join(', ')}, not ${describe(type)}: its relay needs a connection of its own`,
    );
  }
  return new SqlStore(new TypeormDatabase(dataSource, dialect), settings);
}

const runnerOfTypeorm =
  (runner: Pick<TypeormQueryRunner, 'query'>): RunSql =>
  async ({ text, values }) => {
    const rows = await runner.query(text, [...values]);
    return Array.isArray(rows) ? (rows as SqlRow[]) : [];
  };

/** The manager of the data source has connections, but no transaction: its row would stay when the transaction is rolled back. */
function runnerOfTx(tx: unknown): RunSql {
  if (hasMethods(tx, ['query']) && queryRunnerOf(tx).isTransactionActive)
    return runnerOfTypeorm(tx as TypeormQueryRunner);
  throw new InvalidTaskError(
    'typeormOutbox needs the EntityManager or the QueryRunner of a transaction, such as the manager that dataSource.transaction() gives; this one is in none',
  );
}

/** The part of a QueryRunner that says whether it is in a transaction. */
interface Committing {
  readonly isTransactionActive: boolean;
}

/** @param tx an EntityManager or a QueryRunner */
const queryRunnerOf = (tx: unknown): Committing =>
  (tx as { readonly queryRunner?: Committing }).queryRunner ?? (tx as Committing);

/** What is to follow the commits of a DataSource. */
class Commits {
  private readonly works = new WeakMap<Committing, (() => void)[]>();
  private readonly subscriber = {
    afterTransactionCommit: ({ queryRunner }: { queryRunner: Committing }): void => {
      for (const work of this.ended(queryRunner)) work();
    },
    afterTransactionRollback: ({ queryRunner }: { queryRunner: Committing }): void => {
      this.ended(queryRunner);
    },
  };

  constructor(private readonly dataSource: TypeormDataSource) {}

  /** @param tx an EntityManager or a QueryRunner */
  after(tx: unknown, work: () => void): void {
    const { subscribers } = this.dataSource;
    if (!subscribers.includes(this.subscriber)) subscribers.push(this.subscriber);
    const runner = queryRunnerOf(tx);
    const works = this.works.get(runner);
    if (works) works.push(work);
    else this.works.set(runner, [work]);
  }

  /** Those of a savepoint wait for the transaction around it. */
  private ended(runner: Committing): readonly (() => void)[] {
    if (runner.isTransactionActive) return [];
    const works = this.works.get(runner) ?? [];
    this.works.delete(runner);
    return works;
  }
}

class TypeormDatabase implements SqlDatabase {
  readonly listen: SqlDatabase['listen'];
  private readonly commits: Commits;

  constructor(
    private readonly dataSource: TypeormDataSource,
    readonly dialect: SqlDialect,
  ) {
    this.commits = new Commits(dataSource);
    if (dialect === POSTGRES) this.listen = (...args) => this.listenOnPostgres(...args);
  }

  runnerOf(tx: unknown): RunSql {
    return runnerOfTx(tx);
  }

  afterCommit(tx: unknown, work: () => void): void {
    this.commits.after(tx, work);
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
