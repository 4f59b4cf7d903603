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
import { readStoreOptions, type StoreOptions } from './store-options.js';

/** A transaction of Sequelize. */
export interface SequelizeTransaction {
  commit(): Promise<void>;
  rollback(): Promise<void>;
  afterCommit(work: (transaction: never) => void | Promise<void>): void;
}

/** What lends connections of its pool. */
export interface SequelizeConnectionManager {
  getConnection(options: never): Promise<unknown>;
  releaseConnection(connection: never): void;
}

/** A Sequelize 6. */
export interface SequelizeLike {
  getDialect(): string;
  query(text: string, options?: never): Promise<unknown>;
  transaction(options: never): Promise<SequelizeTransaction>;
  readonly connectionManager: SequelizeConnectionManager;
}

/** Sequelize has the placeholders of PostgreSQL for all databases. */
const ON_MYSQL: SqlDialect = { ...MYSQL, placeholder: POSTGRES.placeholder };

const DIALECTS: Readonly<Record<string, SqlDialect>> = { postgres: POSTGRES, mysql: ON_MYSQL, mariadb: ON_MYSQL };

/**
 * The outbox in the database of a Sequelize 6: PostgreSQL, MySQL or MariaDB. A transaction is a Transaction of Sequelize, managed
 * or not.
 *
 * @example
 * AsynqOutboxModule.forRoot({ store: sequelizeOutbox(sequelize) })
 *
 * @throws InvalidOptionError when the database is another one
 */
export function sequelizeOutbox(sequelize: SequelizeLike, options?: StoreOptions): OutboxStore {
  if (!hasMethods(sequelize, ['query', 'transaction', 'getDialect'])) {
    throw new InvalidOptionError('sequelizeOutbox takes a Sequelize');
  }
  const name = sequelize.getDialect();
  const dialect = DIALECTS[name];
  if (!dialect) {
    throw new InvalidOptionError(
      `sequelizeOutbox knows the dialects ${Object.keys(DIALECTS).join(', ')}, not ${describe(name)}`,
    );
  }
  return new SqlStore(new SequelizeDatabase(sequelize, dialect), readStoreOptions(options, 'sequelizeOutbox'));
}

class SequelizeDatabase implements SqlDatabase {
  readonly listen: SqlDatabase['listen'];

  constructor(
    private readonly sequelize: SequelizeLike,
    readonly dialect: SqlDialect,
  ) {
    if (dialect === POSTGRES) this.listen = (...args) => this.listenOnPostgres(...args);
  }

  runnerOf(tx: unknown): RunSql {
    if (hasMethods(tx, ['commit', 'rollback', 'afterCommit'])) return this.runnerIn(tx as SequelizeTransaction);
    throw new InvalidTaskError(
      'sequelizeOutbox needs the Transaction of Sequelize, as sequelize.transaction() gives it',
    );
  }

  /** Sequelize calls back when a savepoint is released, too: the outermost transaction is the one to ask. */
  afterCommit(tx: unknown, work: () => void): void {
    let outermost = tx as SequelizeTransaction & { readonly parent?: SequelizeTransaction | undefined };
    while (outermost.parent) outermost = outermost.parent;
    outermost.afterCommit(work);
  }

  async transaction<T>(work: Work<T>): Promise<T> {
    const options = { isolationLevel: 'READ COMMITTED', logging: false };
    const transaction = await this.sequelize.transaction(options as never);
    try {
      const result = await perform(work, this.runnerIn(transaction, { logging: false }));
      await transaction.commit();
      return result;
    } catch (error) {
      await transaction.rollback().catch(() => undefined);
      throw error;
    }
  }

  /** The rows of the relay are nothing for the log of an application's statements. */
  private runnerIn(transaction: SequelizeTransaction, quiet: { logging?: false } = {}): RunSql {
    return async ({ text, values }) => {
      const options = { ...quiet, bind: values, transaction };
      const [rows] = (await this.sequelize.query(text, options as never)) as [unknown, unknown];
      return Array.isArray(rows) ? (rows as SqlRow[]) : [];
    };
  }

  private async listenOnPostgres(
    channel: string,
    onRows: () => void,
    onLost: () => void,
  ): Promise<() => Promise<void>> {
    const { connectionManager } = this.sequelize;
    const options = { type: 'write', useMaster: true };
    const client = (await connectionManager.getConnection(options as never)) as ListeningClient;
    const release = (): void => {
      try {
        connectionManager.releaseConnection(client as never);
      } catch {
        // A connection that is lost has left the pool by itself.
      }
    };
    return listenByPg(client, release, channel, onRows, onLost);
  }
}
