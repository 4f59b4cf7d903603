import { InvalidOptionError, InvalidTaskError } from '../../errors.js';
import { POSTGRES } from '../sql/postgres.js';
import { perform, type RunSql, type SqlDatabase, type SqlRow, type Work } from '../sql/database.js';
import { SqlStore } from '../sql/sql-store.js';
import type { OutboxStore } from '../store.js';
import { hasMethods } from './methods.js';
import { readStoreOptions, type StoreOptions } from './store-options.js';

/** A client of `pg`: what `pool.connect()` resolves with. */
export interface PgClient {
  query(text: string, values?: unknown[]): Promise<{ rows: object[] }>;
}

/** A client of `pg` from its pool. */
export interface PgPoolClient extends ListeningClient {
  release(destroy?: boolean): void;
}

/** A pool of `pg`. */
export interface PgPool {
  connect(): Promise<PgPoolClient>;
}

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

export const runnerOfPg =
  (client: PgClient): RunSql =>
  async ({ text, values }) =>
    (await client.query(text, [...values])).rows as readonly SqlRow[];

/** A connection that is taken for as long as it listens. */
export interface ListeningClient extends PgClient {
  on(event: 'notification' | 'error' | 'end', listener: () => void): unknown;
  off(event: 'notification' | 'error' | 'end', listener: () => void): unknown;
}

/** @param release gives the connection back, or closes it when it is lost */
export async function listenByPg(
  client: ListeningClient,
  release: (isLost: boolean) => void,
  channel: string,
  onRows: () => void,
  onLost: () => void,
): Promise<() => Promise<void>> {
  let ended = false;
  const end = (): boolean => {
    if (ended) return false;
    ended = true;
    client.off('notification', onRows);
    client.off('end', lost);
    return true; // `lost` stays: an error without a listener would end the process
  };
  const lost = (): void => {
    if (!end()) return;
    release(true);
    onLost();
  };
  client.on('error', lost);
  client.on('end', lost);
  client.on('notification', onRows);
  try {
    await client.query(`LISTEN ${channel}`);
  } catch (error) {
    if (end()) release(true);
    throw error;
  }
  return async () => {
    if (!end()) return;
    const isClean = client.query(`UNLISTEN ${channel}`).then(
      () => true,
      () => false,
    );
    release(!(await isClean));
  };
}

class PgDatabase implements SqlDatabase {
  readonly dialect = POSTGRES;

  constructor(private readonly pool: PgPool) {}

  runnerOf(tx: unknown): RunSql {
    if (hasMethods(tx, ['query'])) return runnerOfPg(tx as PgClient);
    throw new InvalidTaskError('pgOutbox needs the client of the transaction, as pool.connect() gives it');
  }

  async transaction<T>(work: Work<T>): Promise<T> {
    const client = await this.pool.connect();
    let isDone = false;
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
      client.release(!isDone);
    }
  }

  async listen(channel: string, onRows: () => void, onLost: () => void): Promise<() => Promise<void>> {
    const client = await this.pool.connect();
    return listenByPg(client, (isLost) => client.release(isLost), channel, onRows, onLost);
  }
}
