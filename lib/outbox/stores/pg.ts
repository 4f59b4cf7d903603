import { InvalidOptionError, InvalidTaskError } from '../../errors.js';
import { POSTGRES } from '../sql/postgres.js';
import { perform, type RunSql, type SqlDatabase, type SqlRow, type Work } from '../sql/database.js';
import { SqlStore } from '../sql/sql-store.js';
import type { OutboxStore } from '../store.js';
import { listenOn, type PgClient, type PgPool } from './listen.js';
import { hasMethods } from './methods.js';
import { readStoreOptions, type StoreOptions } from './store-options.js';

/**
 * The outbox in PostgreSQL, by `pg`. A transaction is a client between its BEGIN and COMMIT.
 *
 * @example
 * AsynqOutboxModule.forRoot({ store: pgOutbox(pool) })
 *
 * @param pool where the relay gets its connections: two at most
 * @throws InvalidOptionError
 */
export function pgOutbox(pool: PgPool, options?: StoreOptions): OutboxStore {
  if (!hasMethods(pool, ['connect'])) throw new InvalidOptionError('pgOutbox takes a Pool of pg');
  return new SqlStore(new PgDatabase(pool), readStoreOptions(options, 'pgOutbox'));
}

/** Each statement of a pool may have another connection. */
const isPool = (client: unknown): boolean =>
  typeof (client as { readonly totalCount?: unknown }).totalCount === 'number';

const runnerOfPg =
  (client: PgClient): RunSql =>
  async ({ text, values }) =>
    (await client.query(text, [...values])).rows as readonly SqlRow[];

export class PgDatabase implements SqlDatabase {
  readonly dialect = POSTGRES;
  readonly listen?: NonNullable<SqlDatabase['listen']>;

  constructor(private readonly pool: PgPool) {
    this.listen = listenOn(pool);
  }

  runnerOf(tx: unknown): RunSql {
    if (hasMethods(tx, ['query']) && !isPool(tx)) return runnerOfPg(tx as PgClient);
    throw new InvalidTaskError(
      'pgOutbox needs the client of the transaction, as pool.connect() gives it, and not the pool',
    );
  }

  async transaction<T>(work: Work<T>): Promise<T> {
    const client = await this.pool.connect();
    let isDone = false;
    client.on('error', ignore);
    try {
      await client.query('BEGIN ISOLATION LEVEL READ COMMITTED');
      const result = await perform(work, runnerOfPg(client));
      await client.query('COMMIT');
      isDone = true;
      return result;
    } catch (error) {
      await client.query('ROLLBACK').then(
        () => (isDone = true),
        () => undefined,
      );
      throw error;
    } finally {
      client.off('error', ignore);
      client.release(!isDone);
    }
  }
}

/** A client that loses its connection rejects its statement, too; an error without a listener would end the process. */
const ignore = (): void => {};
