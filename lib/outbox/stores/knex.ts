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

/** What runs statements: Knex itself, or a transaction of it. */
export interface KnexRunner {
  raw(text: string, values: readonly unknown[]): PromiseLike<unknown>;
}

/** A Knex. */
export interface KnexLike extends KnexRunner {
  readonly client: {
    readonly config: { readonly client?: unknown };
    acquireConnection(): Promise<unknown>;
    releaseConnection(connection: never): unknown;
  };
  transaction<T>(work: (trx: KnexRunner) => Promise<T>, options: { isolationLevel: 'read committed' }): Promise<T>;
}

/** Knex has placeholders of its own. */
const ON_POSTGRES: SqlDialect = { ...POSTGRES, placeholder: () => '?' };

/** By the `client` of Knex. */
const DIALECTS: Readonly<Record<string, SqlDialect>> = {
  pg: ON_POSTGRES,
  postgres: ON_POSTGRES,
  postgresql: ON_POSTGRES,
  mysql2: MYSQL,
};

/**
 * The outbox in the database of a Knex, by its clients `pg` and `mysql2`. A transaction is a Knex transaction.
 *
 * @example
 * AsynqOutboxModule.forRoot({ store: knexOutbox(knex) })
 *
 * @throws InvalidOptionError when the client is another one
 */
export function knexOutbox(knex: KnexLike, options?: StoreOptions): OutboxStore {
  if (!hasMethods(knex, ['raw', 'transaction'])) throw new InvalidOptionError('knexOutbox takes a Knex');
  const { client } = knex.client.config;
  const dialect = DIALECTS[String(client)];
  if (!dialect) {
    throw new InvalidOptionError(`knexOutbox knows the clients "pg" and "mysql2", not ${describe(client)}`);
  }
  return new SqlStore(new KnexDatabase(knex, dialect), readStoreOptions(options, 'knexOutbox'));
}

const runnerOfKnex =
  (knex: KnexRunner): RunSql =>
  async ({ text, values }) => {
    const reply = await knex.raw(text, values);
    const rows = Array.isArray(reply) ? (reply[0] as unknown) : (reply as { rows?: unknown }).rows;
    return Array.isArray(rows) ? (rows as SqlRow[]) : [];
  };

/** The part of a transaction of Knex that tells of its end. */
interface KnexTransaction {
  /** Rejects after a rollback. */
  readonly executionPromise?: Promise<unknown>;
  /** The transaction that this one is a savepoint of. */
  readonly parentTransaction?: KnexTransaction;
}

class KnexDatabase implements SqlDatabase {
  readonly listen: SqlDatabase['listen'];

  constructor(
    private readonly knex: KnexLike,
    readonly dialect: SqlDialect,
  ) {
    if (dialect === ON_POSTGRES) this.listen = (...args) => this.listenOnPostgres(...args);
  }

  runnerOf(tx: unknown): RunSql {
    const isTransaction = hasMethods(tx, ['raw']) && (tx as { isTransaction?: unknown }).isTransaction === true;
    if (isTransaction) return runnerOfKnex(tx as KnexRunner);
    throw new InvalidTaskError('knexOutbox needs the transaction of Knex, as knex.transaction() gives it');
  }

  afterCommit(tx: unknown, work: () => void): void {
    let outermost = tx as KnexTransaction;
    while (outermost.parentTransaction) outermost = outermost.parentTransaction;
    outermost.executionPromise?.then(work, () => undefined);
  }

  transaction<T>(work: Work<T>): Promise<T> {
    return this.knex.transaction((trx) => perform(work, runnerOfKnex(trx)), { isolationLevel: 'read committed' });
  }

  private async listenOnPostgres(
    channel: string,
    onRows: () => void,
    onLost: () => void,
  ): Promise<() => Promise<void>> {
    const { client } = this.knex;
    const connection = (await client.acquireConnection()) as ListeningClient & { end(): Promise<void> };
    const release = (isLost: boolean): void => {
      if (isLost) void connection.end().catch(() => undefined); // the pool lends no connection that has ended
      void client.releaseConnection(connection as never);
    };
    return listenByPg(connection, release, channel, onRows, onLost);
  }
}
