import { InvalidOptionError, InvalidTaskError } from '../../errors.js';
import { perform, type RunSql, type SqlDatabase, type SqlRow, type Work } from '../sql/database.js';
import { MYSQL } from '../sql/mysql.js';
import { SqlStore } from '../sql/sql-store.js';
import type { OutboxStore } from '../store.js';
import { hasMethods } from './methods.js';
import { readStoreOptions, type StoreOptions } from './store-options.js';

/** A connection of `mysql2/promise`. */
export interface MysqlConnection {
  query(text: string, values?: unknown[]): Promise<[unknown, unknown]>;
}

/** A connection of `mysql2/promise` from its pool. */
export interface MysqlPoolConnection extends MysqlConnection {
  release(): void;
  destroy(): void;
}

/** A pool of `mysql2/promise`. */
export interface MysqlPool {
  getConnection(): Promise<MysqlPoolConnection>;
}

/**
 * The outbox in MySQL or MariaDB, by `mysql2/promise`. A transaction is a connection between BEGIN and COMMIT.
 *
 * @example
 * AsynqOutboxModule.forRoot({ store: mysqlOutbox(pool) })
 *
 * @param pool where the relay gets its connections: one at a time
 * @throws InvalidOptionError
 */
export function mysqlOutbox(pool: MysqlPool, options?: StoreOptions): OutboxStore {
  // The pool of mysql2 without /promise has getConnection, too, and calls back.
  if (!hasMethods(pool, ['getConnection']) || hasMethods(pool, ['promise'])) {
    throw new InvalidOptionError('mysqlOutbox takes a pool of mysql2/promise; make one of another by pool.promise()');
  }
  return new SqlStore(new MysqlDatabase(pool), readStoreOptions(options, 'mysqlOutbox'));
}

const runnerOfMysql =
  (connection: MysqlConnection): RunSql =>
  async ({ text, values }) => {
    const [rows] = await connection.query(text, [...values]);
    return Array.isArray(rows) ? (rows as SqlRow[]) : [];
  };

export class MysqlDatabase implements SqlDatabase {
  readonly dialect = MYSQL;

  constructor(private readonly pool: MysqlPool) {}

  runnerOf(tx: unknown): RunSql {
    if (hasMethods(tx, ['query', 'beginTransaction'])) return runnerOfMysql(tx as MysqlConnection);
    throw new InvalidTaskError('mysqlOutbox needs the connection of the transaction, as pool.getConnection() gives it');
  }

  async transaction<T>(work: Work<T>): Promise<T> {
    const connection = await this.pool.getConnection();
    let isDone = false;
    try {
      await connection.query('SET TRANSACTION ISOLATION LEVEL READ COMMITTED'); // of the next one
      await connection.query('START TRANSACTION');
      const result = await perform(work, runnerOfMysql(connection));
      await connection.query('COMMIT');
      isDone = true;
      return result;
    } catch (error) {
      await connection.query('ROLLBACK').then(
        () => (isDone = true),
        () => undefined,
      );
      throw error;
    } finally {
      if (isDone) connection.release();
      else connection.destroy();
    }
  }
}
