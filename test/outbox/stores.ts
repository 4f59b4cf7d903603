import { existsSync, rmSync } from 'node:fs';
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'libsql';
import { createPool } from 'mysql2/promise';
import pg from 'pg';
import {
  mysqlOutbox,
  type OutboxDialect,
  outboxSchema,
  type OutboxStore,
  pgOutbox,
  sqliteOutbox,
} from 'nestjs-asynq/outbox';
import { type DatabaseServer, startMariadb, startPostgres } from '../support/database-server.js';

/** A store on a database of its own, and how an application makes transactions there. */
export interface StoreWorld {
  readonly store: OutboxStore;
  /** Runs statements, and is no transaction: a store must not take it for one. */
  readonly noTransaction: unknown;
  /** Runs one statement outside of every transaction. */
  sql(text: string): Promise<Record<string, unknown>[]>;
  /** Rolls back what `work` throws. `tx` runs statements in it. */
  transaction<T>(work: (tx: Tx) => Promise<T>): Promise<T>;
  /** Runs `work` in a savepoint of the transaction. Absent: its library tells of no commits. */
  savepoint?(tx: Tx, work: (tx: Tx) => Promise<void>): Promise<void>;
  close(): Promise<void>;
}

export interface Tx {
  query(text: string): Promise<unknown>;
}

export interface StoreKind {
  readonly name: string;
  readonly dialect: OutboxDialect;
  /** Whether relays have notice of rows of other processes. */
  readonly listens: boolean;
  /** Whether the library tells of commits. Default false. */
  readonly commits?: boolean;
  readonly start: () => Promise<DatabaseServer>;
  open(server: DatabaseServer, table?: string): StoreWorld | Promise<StoreWorld>;
}

export const local = { host: '127.0.0.1' };

/** The file of what `SQLITE.start` has started. */
export const fileOf = (server: DatabaseServer): string => (server as SqliteFile).file;

interface SqliteFile extends DatabaseServer {
  readonly file: string;
}

export const PG: StoreKind = {
  name: 'pg',
  dialect: 'postgres',
  listens: true,
  start: startPostgres,
  open: ({ port }, table) => {
    const pool = new pg.Pool({ ...local, port, user: 'postgres', database: 'postgres', max: 10 });
    pool.on('error', () => undefined);
    pool.on('connect', (client) => void client.on('error', () => undefined));
    return {
      store: pgOutbox(pool, { table }),
      noTransaction: pool,
      sql: async (text) => (await pool.query(text)).rows as Record<string, unknown>[],
      transaction: async (work) => {
        const client = await pool.connect();
        let isBroken = true;
        try {
          await client.query('BEGIN');
          const result = await work(client);
          await client.query('COMMIT');
          isBroken = false;
          return result;
        } catch (error) {
          await client.query('ROLLBACK').then(
            () => (isBroken = false),
            () => undefined,
          );
          throw error;
        } finally {
          client.release(isBroken);
        }
      },
      close: () => pool.end(),
    };
  },
};

export const MYSQL: StoreKind = {
  name: 'mysql2 on MariaDB',
  dialect: 'mysql',
  listens: false,
  start: startMariadb,
  open: ({ port }, table) => {
    const pool = createPool({ ...local, port, user: 'root', database: 'test', connectionLimit: 10 });
    return {
      store: mysqlOutbox(pool, { table }),
      noTransaction: pool,
      sql: async (text) => {
        const [rows] = await pool.query(text);
        return Array.isArray(rows) ? (rows as Record<string, unknown>[]) : [];
      },
      transaction: async (work) => {
        const connection = await pool.getConnection();
        let isBroken = true;
        try {
          await connection.beginTransaction();
          const result = await work(connection);
          await connection.commit();
          isBroken = false;
          return result;
        } catch (error) {
          await connection.rollback().then(
            () => (isBroken = false),
            () => undefined,
          );
          throw error;
        } finally {
          if (isBroken) connection.destroy();
          else connection.release();
        }
      },
      close: () => pool.end(),
    };
  },
};

/** In memory where the system has that: SQLite waits for the disk at each commit, and only processes die here. */
const SQLITE_ROOT = existsSync('/dev/shm') ? '/dev/shm' : tmpdir();

/** A file instead of a server. */
async function startSqlite(): Promise<SqliteFile> {
  const dir = await mkdtemp(join(SQLITE_ROOT, 'sqlite-test-'));
  const nothing = () => Promise.resolve();
  const stop = async () => rmSync(dir, { recursive: true });
  return { port: 0, file: join(dir, 'app.db'), kill: nothing, start: nothing, stop };
}

export const SQLITE: StoreKind = {
  name: 'libsql on SQLite',
  dialect: 'sqlite',
  listens: false,
  start: startSqlite,
  open: (server, table) => {
    const db = new Database(fileOf(server));
    const store = sqliteOutbox(db, { table });
    return {
      store,
      noTransaction: db,
      sql: async (text) => db.prepare(text).all() as Record<string, unknown>[],
      transaction: async (work) => {
        db.exec('BEGIN');
        try {
          const result = await work(Object.assign(db, { query: async (text: string) => db.exec(text) }));
          db.exec('COMMIT');
          return result;
        } catch (error) {
          db.exec('ROLLBACK');
          throw error;
        }
      },
      close: async () => {
        store.close?.();
        db.close();
      },
    };
  },
};

/** Makes new tables. */
export async function createTables({ sql }: StoreWorld, kind: StoreKind, table = 'asynq_outbox'): Promise<void> {
  await sql(`DROP TABLE IF EXISTS ${table}`);
  await sql(`DROP TABLE IF EXISTS ${table}_senders`);
  for (const statement of outboxSchema(kind.dialect, table)) await sql(statement);
}
