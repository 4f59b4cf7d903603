import { InvalidOptionError, InvalidTaskError } from '../../errors.js';
import { loadPeer } from '../../transactions/transactions.js';
import { perform, type RunSql, type SqlDatabase, type SqlRow, type Work } from '../sql/database.js';
import type { SqlDialect } from '../sql/dialect.js';
import { MYSQL } from '../sql/mysql.js';
import { POSTGRES } from '../sql/postgres.js';
import { SqlStore } from '../sql/sql-store.js';
import type { OutboxStore } from '../store.js';
import { listenOn, type PgPool } from './listen.js';
import { hasMethods } from './methods.js';
import { readStoreOptions, type StoreOptions } from './store-options.js';

/** What runs statements: a database of Drizzle, or a transaction of it. */
export interface DrizzleRunner {
  execute(query: never): PromiseLike<unknown>;
}

/** A database of Drizzle. */
export interface DrizzleLike extends DrizzleRunner {
  transaction<T>(work: (tx: DrizzleRunner) => Promise<T>, config: { isolationLevel: 'read committed' }): Promise<T>;
}

/** Drizzle places parameters itself. */
const ON_POSTGRES: SqlDialect = { ...POSTGRES, placeholder: () => '?' };

/** By the name that Drizzle gives its classes. */
const DIALECTS: Readonly<Record<string, SqlDialect>> = {
  NodePgDatabase: ON_POSTGRES,
  MySql2Database: MYSQL,
};

/**
 * The outbox in the database of a Drizzle, by its drivers `node-postgres` and `mysql2`. A transaction is a Drizzle
 * transaction.
 *
 * @example
 * AsynqOutboxModule.forRoot({ store: drizzleOutbox(db) })
 *
 * @throws InvalidOptionError when the driver is another one
 */
export function drizzleOutbox(db: DrizzleLike, options?: StoreOptions): OutboxStore {
  if (!hasMethods(db, ['execute', 'transaction'])) throw new InvalidOptionError(wrongDatabase('this'));
  const kind = String((db.constructor as unknown as Record<symbol, unknown>)[Symbol.for('drizzle:entityKind')]);
  const dialect = DIALECTS[kind];
  if (!dialect) throw new InvalidOptionError(wrongDatabase(kind));
  return new SqlStore(new DrizzleDatabase(db, dialect), readStoreOptions(options, 'drizzleOutbox'));
}

const wrongDatabase = (kind: string): string =>
  `drizzleOutbox takes a database of drizzle-orm/node-postgres or drizzle-orm/mysql2, not ${kind}`;

class DrizzleDatabase implements SqlDatabase {
  readonly listen: SqlDatabase['listen'];
  private drizzle: Promise<typeof import('drizzle-orm')> | undefined;

  constructor(
    private readonly db: DrizzleLike,
    readonly dialect: SqlDialect,
  ) {
    const pool = (db as { readonly $client?: PgPool }).$client;
    if (dialect === ON_POSTGRES && isPool(pool)) this.listen = listenOn(pool);
  }

  async load(): Promise<void> {
    await this.loaded();
  }

  runnerOf(tx: unknown): RunSql {
    if (hasMethods(tx, ['execute', 'rollback'])) return this.runnerOn(tx as DrizzleRunner);
    throw new InvalidTaskError('drizzleOutbox needs the transaction of Drizzle, as db.transaction() gives it');
  }

  transaction<T>(work: Work<T>): Promise<T> {
    return this.db.transaction((tx) => perform(work, this.runnerOn(tx)), { isolationLevel: 'read committed' });
  }

  private loaded(): Promise<typeof import('drizzle-orm')> {
    return (this.drizzle ??= loadPeer(() => import('drizzle-orm'), 'drizzleOutbox', 'drizzle-orm'));
  }

  private runnerOn(runner: DrizzleRunner): RunSql {
    return async ({ text, values }) => {
      const { sql } = await this.loaded();
      const [first = '', ...parts] = text.split('?');
      const chunks = parts.flatMap((part, index) => [sql.param(values[index]), sql.raw(part)]);
      const reply = await runner.execute(sql.join([sql.raw(first), ...chunks]) as never);
      const rows = Array.isArray(reply) ? (reply[0] as unknown) : (reply as { rows?: unknown }).rows;
      return Array.isArray(rows) ? (rows as SqlRow[]) : [];
    };
  }
}

/** A single client cannot be taken for as long as a relay listens. */
const isPool = (client: PgPool | undefined): client is PgPool =>
  hasMethods(client, ['connect']) && (client as { totalCount?: unknown }).totalCount !== undefined;
