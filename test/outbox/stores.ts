import { knex } from 'knex';
import { createPool } from 'mysql2/promise';
import pg from 'pg';
import { knexOutbox, mysqlOutbox, outboxSchema, type OutboxStore, pgOutbox, typeormOutbox } from 'nestjs-asynq/outbox';
import { DataSource } from 'typeorm';
import { type DatabaseServer, startMariadb, startPostgres } from '../support/database-server.js';

/** A store on a database of its own, and how an application makes transactions there. */
export interface StoreWorld {
  readonly store: OutboxStore;
  /** Runs one statement outside of every transaction. */
  sql(text: string): Promise<Record<string, unknown>[]>;
  /** Rolls back what `work` throws. `tx` runs statements in it. */
  transaction<T>(work: (tx: Tx) => Promise<T>): Promise<T>;
  close(): Promise<void>;
}

export interface Tx {
  query(text: string): Promise<unknown>;
}

export interface StoreKind {
  readonly name: string;
  readonly start: () => Promise<DatabaseServer>;
  open(port: number, table?: string): StoreWorld | Promise<StoreWorld>;
}

const local = { host: '127.0.0.1' };

export const PG: StoreKind = {
  name: 'pg',
  start: startPostgres,
  open: (port, table) => {
    const pool = new pg.Pool({ ...local, port, user: 'postgres', database: 'postgres', max: 10 });
    pool.on('error', () => undefined);
    pool.on('connect', (client) => void client.on('error', () => undefined));
    return {
      store: pgOutbox(pool, { table }),
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
  start: startMariadb,
  open: (port, table) => {
    const pool = createPool({ ...local, port, user: 'root', database: 'test', connectionLimit: 10 });
    return {
      store: mysqlOutbox(pool, { table }),
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

const typeorm = (kind: StoreKind, name: string, options: (port: number) => object): StoreKind => ({
  name,
  start: kind.start,
  open: async (port, table) => {
    const source = await new DataSource(options(port) as never).initialize();
    return {
      store: typeormOutbox(source, { table }),
      sql: (text) => source.query(text),
      transaction: (work) => source.transaction((manager) => work(manager)),
      close: () => source.destroy(),
    };
  },
});

export const TYPEORM_POSTGRES = typeorm(PG, 'TypeORM on PostgreSQL', (port) => ({
  ...local,
  port,
  type: 'postgres',
  username: 'postgres',
  database: 'postgres',
}));

export const TYPEORM_MARIADB = typeorm(MYSQL, 'TypeORM on MariaDB', (port) => ({
  ...local,
  port,
  type: 'mariadb',
  username: 'root',
  database: 'test',
}));

const withKnex = (kind: StoreKind, name: string, client: string, user: string, database: string): StoreKind => ({
  name,
  start: kind.start,
  open: (port, table) => {
    const db = knex({ client, connection: { ...local, port, user, database } });
    return {
      store: knexOutbox(db, { table }),
      sql: async (text) => {
        const reply: unknown = await db.raw(text);
        const rows = Array.isArray(reply) ? (reply[0] as unknown) : (reply as { rows: unknown }).rows;
        return Array.isArray(rows) ? (rows as Record<string, unknown>[]) : [];
      },
      transaction: (work) =>
        db.transaction((trx) => work(Object.assign(trx, { query: (text: string) => trx.raw(text) }))),
      close: () => db.destroy(),
    };
  },
});

export const KNEX_POSTGRES = withKnex(PG, 'Knex on PostgreSQL', 'pg', 'postgres', 'postgres');
export const KNEX_MARIADB = withKnex(MYSQL, 'Knex on MariaDB', 'mysql2', 'root', 'test');

export const KINDS = [PG, MYSQL, TYPEORM_POSTGRES, TYPEORM_MARIADB, KNEX_POSTGRES, KNEX_MARIADB];

/** Makes the tables anew. */
export async function createTables({ sql }: StoreWorld, kind: StoreKind, table = 'asynq_outbox'): Promise<void> {
  await sql(`DROP TABLE IF EXISTS ${table}`);
  await sql(`DROP TABLE IF EXISTS ${table}_senders`);
  for (const statement of outboxSchema(kind.start === startPostgres ? 'postgres' : 'mysql', table))
    await sql(statement);
}
