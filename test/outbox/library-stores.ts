import { drizzle as drizzleOnPg } from 'drizzle-orm/node-postgres';
import { drizzle as drizzleOnMysql } from 'drizzle-orm/mysql2';
import { sql as raw } from 'drizzle-orm';
import { type Knex, knex } from 'knex';
import { CompiledQuery, type Dialect, Kysely, MysqlDialect, PostgresDialect, SqliteDialect } from 'kysely';
import Libsql from 'libsql';
import { createPool } from 'mysql2';
import { createPool as createPromisePool } from 'mysql2/promise';
import pg from 'pg';
import {
  type DrizzleLike,
  drizzleOutbox,
  knexOutbox,
  kyselyOutbox,
  prismaOutbox,
  sequelizeOutbox,
  typeormOutbox,
} from 'nestjs-asynq/outbox';
import { Sequelize, type Transaction } from 'sequelize';
import { DataSource, type EntityManager } from 'typeorm';
import type { DatabaseServer } from '../support/database-server.js';
import { prismaOnMariadb, prismaOnPostgres, prismaOnSqlite, type TestPrisma } from './prisma-client.js';
import { fileOf, local, MYSQL, PG, SQLITE, type StoreKind, type Tx } from './stores.js';

const typeorm = (kind: StoreKind, name: string, options: (server: DatabaseServer) => object): StoreKind => ({
  name,
  dialect: kind.dialect,
  listens: kind.listens,
  commits: true,
  start: kind.start,
  open: async (server, table) => {
    const source = await new DataSource(options(server) as never).initialize();
    const store = typeormOutbox(source, { table });
    return {
      store,
      noTransaction: source.manager,
      sql: (text) => source.query(text),
      transaction: (work) => source.transaction((manager) => work(manager)),
      savepoint: (tx, work) => (tx as EntityManager).transaction((manager) => work(manager)),
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
  listens: kind.listens,
  commits: true,
  start: kind.start,
  open: ({ port }, table) => {
    const db = knex({ client, connection: { ...local, port, user, database } });
    return {
      store: knexOutbox(db, { table }),
      noTransaction: db,
      sql: async (text) => {
        const reply: unknown = await db.raw(text);
        const rows = Array.isArray(reply) ? (reply[0] as unknown) : (reply as { rows: unknown }).rows;
        return Array.isArray(rows) ? (rows as Record<string, unknown>[]) : [];
      },
      transaction: (work) =>
        db.transaction((trx) => work(Object.assign(trx, { query: (text: string) => trx.raw(text) }))),
      savepoint: (tx, work) =>
        (tx as Tx & Knex.Transaction).transaction((trx) => work(Object.assign(trx, { query: trx.raw.bind(trx) }))),
      close: () => db.destroy(),
    };
  },
});

export const KNEX_POSTGRES = withKnex(PG, 'Knex on PostgreSQL', 'pg', 'postgres', 'postgres');
export const KNEX_MARIADB = withKnex(MYSQL, 'Knex on MariaDB', 'mysql2', 'root', 'test');

const withKysely = (kind: StoreKind, name: string, dialect: (server: DatabaseServer) => Dialect): StoreKind => ({
  name,
  dialect: kind.dialect,
  listens: kind.listens,
  start: kind.start,
  open: (server, table) => {
    const db = new Kysely<unknown>({ dialect: dialect(server) });
    const listen = kind === PG ? pgPool(server.port) : undefined;
    const query = (on: Kysely<unknown>, text: string) => on.executeQuery(CompiledQuery.raw(text));
    return {
      store: kyselyOutbox(db, { table, ...(listen && { listen }) }),
      noTransaction: db,
      sql: async (text) => (await query(db, text)).rows as Record<string, unknown>[],
      transaction: (work) =>
        db.transaction().execute((trx) => work(Object.assign(trx, { query: (text: string) => query(trx, text) }))),
      close: async () => {
        await db.destroy();
        await listen?.end();
      },
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
      noTransaction: connected.db,
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

const withPrisma = (kind: StoreKind, name: string, connect: (server: DatabaseServer) => TestPrisma): StoreKind => ({
  name,
  dialect: kind.dialect,
  listens: kind.listens,
  start: kind.start,
  open: (server, table) => {
    const prisma = connect(server);
    const listen = kind === PG ? pgPool(server.port) : undefined;
    return {
      store: prismaOutbox(prisma, { table, ...(listen && { listen }) }),
      noTransaction: prisma,
      sql: async (text) => {
        if (/^(SELECT|SHOW)|RETURNING/.test(text))
          return (await prisma.$queryRawUnsafe(text)) as Record<string, unknown>[];
        await prisma.$executeRawUnsafe(text);
        return [];
      },
      transaction: (work) =>
        prisma.$transaction((tx) => work(Object.assign(tx, { query: (text: string) => tx.$executeRawUnsafe(text) }))),
      close: async () => {
        await prisma.$disconnect();
        await listen?.end();
      },
    };
  },
});

export const PRISMA_POSTGRES = withPrisma(PG, 'Prisma on PostgreSQL', ({ port }) => prismaOnPostgres(port));
export const PRISMA_MARIADB = withPrisma(MYSQL, 'Prisma on MariaDB', ({ port }) => prismaOnMariadb(port));
export const PRISMA_SQLITE = withPrisma(SQLITE, 'Prisma on SQLite', (server) => prismaOnSqlite(fileOf(server)));

/** Sequelize writes each statement to the console, unless it is told not to. */
export const sequelizeOn = (kind: StoreKind, port: number): Sequelize =>
  kind.dialect === 'postgres'
    ? new Sequelize('postgres', 'postgres', '', { ...local, port, dialect: 'postgres', logging: false })
    : new Sequelize('test', 'root', '', { ...local, port, dialect: 'mysql', logging: false });

const withSequelize = (kind: StoreKind, name: string): StoreKind => ({
  name,
  dialect: kind.dialect,
  listens: kind.listens,
  commits: true,
  start: kind.start,
  open: ({ port }, table) => {
    const sequelize = sequelizeOn(kind, port);
    return {
      store: sequelizeOutbox(sequelize, { table }),
      noTransaction: sequelize,
      sql: async (text) => {
        const [rows] = await sequelize.query(text);
        return Array.isArray(rows) ? (rows as Record<string, unknown>[]) : [];
      },
      transaction: (work) =>
        sequelize.transaction((transaction) =>
          work(Object.assign(transaction, { query: (text: string) => sequelize.query(text, { transaction }) })),
        ),
      savepoint: (tx, work) =>
        sequelize.transaction({ transaction: tx as Tx & Transaction }, (transaction) =>
          work(Object.assign(transaction, { query: (text: string) => sequelize.query(text, { transaction }) })),
        ),
      close: () => sequelize.close(),
    };
  },
});

export const SEQUELIZE_POSTGRES = withSequelize(PG, 'Sequelize on PostgreSQL');
export const SEQUELIZE_MARIADB = withSequelize(MYSQL, 'Sequelize on MariaDB');

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
  PRISMA_POSTGRES,
  PRISMA_MARIADB,
  PRISMA_SQLITE,
  SEQUELIZE_POSTGRES,
  SEQUELIZE_MARIADB,
];
