import { createRequire } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { CommandLineError } from '../../errors.js';
import type { SqlDatabase } from '../../outbox/sql/database.js';

/** A database of an outbox, with what closes it. */
export interface OutboxDatabase {
  readonly database: SqlDatabase;
  close(): Promise<void>;
}

interface PgModule {
  readonly Pool: new (options: object) => never;
}
interface MysqlModule {
  createPool(options: object): never;
}
type SqliteModule = new (file: string, options: object) => never;

const EXPECTED =
  'give the database with --database or ASYNQ_DATABASE: postgres://…, mysql://…, mariadb://… or sqlite:app.db';

/**
 * Connects to the database of a URL, by the driver of the application in the working directory: this package has none.
 *
 * @throws CommandLineError which does not quote the URL: it may have a password
 */
export async function openOutboxDatabase(url: string | undefined): Promise<OutboxDatabase> {
  if (!url) throw new CommandLineError(`which database? ${EXPECTED}`);
  const [scheme] = url.split(':', 1);
  switch (scheme) {
    case 'postgres':
    case 'postgresql':
      return openPostgres(url);
    case 'mysql':
    case 'mariadb':
      return openMysql(url.replace(/^mariadb:/, 'mysql:'));
    case 'sqlite':
    case 'file':
      return openSqlite(url);
    default:
      throw new CommandLineError(`this is no database of an outbox; ${EXPECTED}`);
  }
}

async function openPostgres(url: string): Promise<OutboxDatabase> {
  const { PgDatabase } = await import('../../outbox/stores/pg.js');
  const { Pool } = load<PgModule>(['pg']);
  const pool: { end(): Promise<void>; on(event: 'error', listener: () => void): void } = new Pool({
    connectionString: url,
    max: 1,
  });
  pool.on('error', () => undefined); // the statement under way has it, too
  return { database: new PgDatabase(pool as never), close: () => pool.end() };
}

async function openMysql(url: string): Promise<OutboxDatabase> {
  const { MysqlDatabase } = await import('../../outbox/stores/mysql.js');
  const pool: { end(): Promise<void> } = load<MysqlModule>(['mysql2/promise']).createPool({
    uri: url,
    connectionLimit: 1,
  });
  return { database: new MysqlDatabase(pool as never), close: () => pool.end() };
}

async function openSqlite(url: string): Promise<OutboxDatabase> {
  const { SqliteDatabase } = await import('../../outbox/stores/sqlite.js');
  const file = url.startsWith('file://') ? fileURLToPath(url) : url.replace(/^\w+:(\/\/)?/, '');
  const Database = load<SqliteModule>(['better-sqlite3', 'libsql']);
  let connection: { close(): void };
  try {
    connection = new Database(file, { fileMustExist: true });
  } catch (cause) {
    throw new CommandLineError(`the file ${JSON.stringify(file)} cannot be opened: ${(cause as Error).message}`, {
      cause,
    });
  }
  const database = new SqliteDatabase(() => connection as never);
  return {
    database,
    close: async () => {
      database.close();
      connection.close();
    },
  };
}

/** The first of these packages that is there. */
function load<T>(names: readonly string[]): T {
  const require = createRequire(join(process.cwd(), 'package.json'));
  let missing: unknown;
  for (const name of names) {
    try {
      return require(name) as T;
    } catch (error) {
      missing = error;
    }
  }
  throw new CommandLineError(
    `the driver ${names.join(' or ')} cannot be loaded in ${process.cwd()}; run the command where the application has it`,
    { cause: missing },
  );
}
