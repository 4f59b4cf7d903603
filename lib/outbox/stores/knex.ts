import { InvalidOptionError, InvalidTaskError } from '../../errors.js';
import { describe } from '../../validation.js';
import { perform, type RunSql, type SqlDatabase, type SqlRow, type Work } from '../sql/database.js';
import type { SqlDialect } from '../sql/dialect.js';
import { MYSQL } from '../sql/mysql.js';
import { POSTGRES } from '../sql/postgres.js';
import { SqlStore } from '../sql/sql-store.js';
import type { OutboxStore } from '../store.js';
import { hasMethods } from './methods.js';
import { readStoreOptions, type StoreOptions } from './store-options.js';

/** What runs statements: Knex itself, or a transaction of it. */
export interface KnexRunner {
  raw(text: string, values: readonly unknown[]): PromiseLike<unknown>;
}

/** A Knex. */
export interface KnexLike extends KnexRunner {
  readonly client: { readonly config: { readonly client?: unknown } };
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

class KnexDatabase implements SqlDatabase {
  constructor(
    private readonly knex: KnexLike,
    readonly dialect: SqlDialect,
  ) {}

  runnerOf(tx: unknown): RunSql {
    if (hasMethods(tx, ['raw'])) return runnerOfKnex(tx as KnexRunner);
    throw new InvalidTaskError('knexOutbox needs the transaction of Knex, as knex.transaction() gives it');
  }

  transaction<T>(work: Work<T>): Promise<T> {
    return this.knex.transaction((trx) => perform(work, runnerOfKnex(trx)), { isolationLevel: 'read committed' });
  }
}
