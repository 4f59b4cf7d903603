import { drizzle as drizzleOnPg } from 'drizzle-orm/node-postgres';
import { drizzle as drizzleOnMysql } from 'drizzle-orm/mysql2';
import { sql as raw } from 'drizzle-orm';
import { knex } from 'knex';
import { CompiledQuery, type Dialect, Kysely, MysqlDialect, PostgresDialect, SqliteDialect } from 'kysely';
import Libsql from 'libsql';
import { createPool } from 'mysql2';
import { createPool as createPromisePool } from 'mysql2/promise';
import pg from 'pg';
import { type DrizzleLike, drizzleOutbox, knexOutbox, kyselyOutbox, typeormOutbox } from 'nestjs-asynq/outbox';
import { DataSource } from 'typeorm';
import type { DatabaseServer } from '../support/database-server.js';
import { fileOf, local, MYSQL, PG, SQLITE, type StoreKind } from './stores.js';

const typeorm = (kind: StoreKind, name: string, options: (server: DatabaseServer) => object): StoreKind => ({
  name,
  dialect: kind.dialect,
  listens: kind.listens,
  start: kind.start,
  open: async (server, table) => {
    const source = await new DataSource(options(server) as never).initialize();
    const store = typeormOutbox(source, { table });
    return {
      store,
      sql: (text) => source.query(text),
      transaction: (work) => source.transaction((manager) => work(manager)),
      close: async () => {
        store.close?.();
        await source.destroy();
      },
    };
  },
});

export const TYPEORM_POSTGRES = typeorm(PG, 'TypeORM on PostgreSQL', ({ port }) => ({
  ...local,
  port,
  type: 'postgres',
  username: 'postgres',
  database: 'postgres',
}));

export const TYPEORM_MARIADB = typeorm(MYSQL, 'TypeORM on MariaDB', ({ port }) => ({
  ...local,
  port,
  type: 'mariadb',
  username: 'root',
  database: 'test',
}));

export const TYPEORM_SQLITE = typeorm(SQLITE, 'TypeORM on SQLite', (server) => ({
  type: 'better-sqlite3',
  driver: Libsql,
  database: fileOf(server),
}));

const withKnex = (kind: StoreKind, name: string, client: string, user: string, database: string): StoreKind => ({
  name,
  dialect: kind.dialect,
  listens: false,
  start: kind.start,
  open: ({ port }, table) => {
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

const withKysely = (kind: StoreKind, name: string, dialect: (server: DatabaseServer) => Dialect): StoreKind => ({
  name,
  dialect: kind.dialect,
  listens: false,
  start: kind.start,
  open: (server, table) => {
    const db = new Kysely<unknown>({ dialect: dialect(server) });
    const query = (on: Kysely<unknown>, text: string) => on.executeQuery(CompiledQuery.raw(text));
    return {
      store: kyselyOutbox(db, { table }),
      sql: async (text) => (await query(db, text)).rows as Record<string, unknown>[],
      transaction: (work) =>
        db.transaction().execute((trx) => work(Object.assign(trx, { query: (text: string) => query(trx, text) }))),
      close: () => db.destroy(),
    };
  },
});

const pgPool = (port: number): pg.Pool => new pg.Pool({ ...local, port, user: 'postgres', database: 'postgres' });

export const KYSELY_POSTGRES = withKysely(
  PG,
  'Kysely on PostgreSQL',
  ({ port }) => new PostgresDialect({ pool: pgPool(port) }),
);
export const KYSELY_MARIADB = withKysely(
  MYSQL,
  'Kysely on MariaDB',
  ({ port }) => new MysqlDialect({ pool: createPool({ ...local, port, user: 'root', database: 'test' }) as never }),
);
export const KYSELY_SQLITE = withKysely(
  SQLITE,
  'Kysely on SQLite',
  (server) => new SqliteDialect({ database: new Libsql(fileOf(server)) as never }),
);

type DrizzleRunner = { execute(query: unknown): PromiseLike<unknown> };
type DrizzleDb = DrizzleRunner & { transaction<T>(work: (tx: DrizzleRunner) => Promise<T>): Promise<T> };

const withDrizzle = (
  kind: StoreKind,
  name: string,
  connect: (port: number) => { db: DrizzleLike; close: () => Promise<void> },
): StoreKind => ({
  name,
  dialect: kind.dialect,
  listens: kind.listens,
  start: kind.start,
  open: ({ port }, table) => {
    const connected = connect(port);
    const db = connected.db as never as DrizzleDb;
    return {
      store: drizzleOutbox(connected.db, { table }),
      sql: async (text) => {
        const reply = await db.execute(raw.raw(text));
        const rows = Array.isArray(reply) ? (reply[0] as unknown) : (reply as { rows: unknown }).rows;
        return Array.isArray(rows) ? (rows as Record<string, unknown>[]) : [];
      },
      transaction: (work) =>
        db.transaction((tx) =>
          work(Object.assign(tx, { query: async (text: string) => void (await tx.execute(raw.raw(text))) })),
        ),
      close: connected.close,
    };
  },
});

export const DRIZZLE_POSTGRES = withDrizzle(PG, 'Drizzle on PostgreSQL', (port) => {
  const pool = pgPool(port);
  return { db: drizzleOnPg(pool), close: () => pool.end() };
});
export const DRIZZLE_MARIADB = withDrizzle(MYSQL, 'Drizzle on MariaDB', (port) => {
  const pool = createPromisePool({ ...local, port, user: 'root', database: 'test' });
  return { db: drizzleOnMysql(pool), close: () => pool.end() };
});

export const KINDS = [
  PG,
  MYSQL,
  SQLITE,
  TYPEORM_POSTGRES,
  TYPEORM_MARIADB,
  TYPEORM_SQLITE,
  KNEX_POSTGRES,
  KNEX_MARIADB,
  KYSELY_POSTGRES,
  KYSELY_MARIADB,
  KYSELY_SQLITE,
  DRIZZLE_POSTGRES,
  DRIZZLE_MARIADB,
];
