import { InvalidOptionError, InvalidTaskError } from '../../errors.js';
import { describe } from '../../validation.js';
import { perform, type RunSql, type SqlDatabase, type SqlRow, type Work } from '../sql/database.js';
import type { SqlDialect } from '../sql/dialect.js';
import { MYSQL } from '../sql/mysql.js';
import { POSTGRES } from '../sql/postgres.js';
import { SqlStore } from '../sql/sql-store.js';
import { SQLITE } from '../sql/sqlite.js';
import type { OutboxStore } from '../store.js';
import { hasMethods } from './methods.js';
import { readStoreOptions, type StoreOptions } from './store-options.js';

/** What runs statements: a PrismaClient, or a transaction of it. */
export interface PrismaRunner {
  $queryRawUnsafe(text: string, ...values: never[]): PromiseLike<unknown>;
  $executeRawUnsafe(text: string, ...values: never[]): PromiseLike<unknown>;
}

/** A PrismaClient. */
export interface PrismaLike extends PrismaRunner {
  $transaction(work: never, options?: never): Promise<unknown>;
  $connect(): PromiseLike<unknown>;
}

/** By the provider of the schema. */
const DIALECTS: Readonly<Record<string, SqlDialect>> = { postgresql: POSTGRES, mysql: MYSQL, sqlite: SQLITE };

/** How long a transaction of the relay may take; Prisma's own default is 5 s. In milliseconds. */
const TIMEOUT_MS = 60_000;

/**
 * The outbox in the database of a PrismaClient: PostgreSQL, MySQL, MariaDB, or a file of SQLite. A transaction is what
 * `prisma.$transaction(async (tx) => …)` gives. Prisma lends no connection: for notices of rows in PostgreSQL, give the option
 * `listen`. With SQLite, the relay takes its turn on the only connection.
 *
 * @example
 * AsynqOutboxModule.forRoot({ store: prismaOutbox(prisma, { listen: pool }) })
 *
 * @throws InvalidOptionError when the database is another one
 */
export function prismaOutbox(prisma: PrismaLike, options?: StoreOptions): OutboxStore {
  if (!hasMethods(prisma, ['$queryRawUnsafe', '$executeRawUnsafe', '$transaction', '$connect'])) {
    throw new InvalidOptionError('prismaOutbox takes a PrismaClient');
  }
  const provider = (prisma as unknown as Readonly<Record<string, unknown>>)['_activeProvider'];
  const dialect = DIALECTS[String(provider)];
  if (!dialect) {
    throw new InvalidOptionError(
      `prismaOutbox knows the providers ${Object.keys(DIALECTS).join(', ')}, not ${describe(provider)}`,
    );
  }
  return new SqlStore(new PrismaDatabase(prisma, dialect), readStoreOptions(options, 'prismaOutbox'));
}

/** Prisma has one method for statements that give rows, and one for those that do not. */
const runnerOfPrisma =
  (prisma: PrismaRunner): RunSql =>
  async ({ text, values }) => {
    const args = values as readonly never[];
    if (text.startsWith('SELECT')) return (await prisma.$queryRawUnsafe(text, ...args)) as SqlRow[];
    await prisma.$executeRawUnsafe(text, ...args);
    return [];
  };

class PrismaDatabase implements SqlDatabase {
  constructor(
    private readonly prisma: PrismaLike,
    readonly dialect: SqlDialect,
  ) {}

  runnerOf(tx: unknown): RunSql {
    const isTransaction = hasMethods(tx, ['$executeRawUnsafe']) && !hasMethods(tx, ['$connect']);
    if (isTransaction) return runnerOfPrisma(tx as PrismaRunner);
    throw new InvalidTaskError('prismaOutbox needs the transaction of Prisma, as prisma.$transaction() gives it');
  }

  async transaction<T>(work: Work<T>): Promise<T> {
    const isolation = this.dialect === SQLITE ? {} : { isolationLevel: 'ReadCommitted' };
    const options = { ...isolation, timeout: TIMEOUT_MS, maxWait: TIMEOUT_MS };
    const run = (tx: PrismaRunner): Promise<T> => perform(work, runnerOfPrisma(tx));
    return (await this.prisma.$transaction(run as never, options as never)) as T;
  }
}
