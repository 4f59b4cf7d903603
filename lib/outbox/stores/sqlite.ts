import { setTimeout as pause } from 'node:timers/promises';
import { InvalidOptionError, InvalidTaskError } from '../../errors.js';
import type { RunSql, SqlDatabase, SqlRow, Work } from '../sql/database.js';
import { SqlStore } from '../sql/sql-store.js';
import { SQLITE } from '../sql/sqlite.js';
import type { Statement } from '../sql/statement.js';
import type { OutboxStore } from '../store.js';
import { hasMethods } from './methods.js';
import { readStoreOptions, type StoreOptions } from './store-options.js';

/** A connection of `better-sqlite3`, or of `libsql`, which has the same interface. */
export interface SqliteConnection {
  readonly inTransaction: boolean;
  prepare(text: string): { all(...values: unknown[]): unknown[]; run(...values: unknown[]): unknown };
  exec(text: string): unknown;
  close(): unknown;
}

type OpenSqlite = new (file: string, options: { timeout: number; fileMustExist: boolean }) => SqliteConnection;

/** How long the relay waits for a transaction of the application to end. */
const BUSY_MS = 5_000;
const LONGEST_PAUSE_MS = 50;

/**
 * The outbox in a file of SQLite, by `better-sqlite3` or `libsql`. A transaction is the connection between BEGIN and
 * COMMIT: `db.transaction()` of these libraries ends before a promise resolves, so it cannot be used here.
 *
 * @example
 * AsynqOutboxModule.forRoot({ store: sqliteOutbox(new Database('app.db')) })
 *
 * @param database the connection of the application; the relay opens one of its own to the same file
 * @throws InvalidOptionError
 */
export function sqliteOutbox(database: SqliteConnection, options?: StoreOptions): OutboxStore {
  if (!hasMethods(database, ['prepare', 'exec'])) {
    throw new InvalidOptionError('sqliteOutbox takes a Database of better-sqlite3 or libsql');
  }
  return new SqlStore(new SqliteDatabase(() => database), readStoreOptions(options, 'sqliteOutbox'));
}

/** With the connection of an application, which need not be open when this is made. */
export class SqliteDatabase implements SqlDatabase {
  readonly dialect = SQLITE;
  private own: SqliteConnection | undefined;

  constructor(
    private readonly application: () => SqliteConnection,
    private readonly runnerOfTx: (tx: unknown) => RunSql = runnerOfSqlite,
    readonly afterCommit?: SqlDatabase['afterCommit'],
  ) {}

  runnerOf(tx: unknown): RunSql {
    return this.runnerOfTx(tx);
  }

  /** Between BEGIN and COMMIT nothing else runs in this thread: who waits for the file would block it. */
  async transaction<T>(work: Work<T>): Promise<T> {
    const connection = (this.own ??= this.open());
    const until = performance.now() + BUSY_MS;
    for (let wait = 1; ; wait = Math.min(2 * wait, LONGEST_PAUSE_MS)) {
      if (begin(connection, performance.now() < until)) return complete(connection, work);
      await pause(wait);
    }
  }

  close(): void {
    this.own?.close();
    this.own = undefined;
  }

  private open(): SqliteConnection {
    const application = this.application();
    const [main] = application.prepare('PRAGMA database_list').all() as { file: string | null }[];
    if (!main?.file) {
      throw new InvalidOptionError(
        'an outbox in SQLite needs a file, as its relay has a connection of its own; a database in memory has one only',
      );
    }
    const Database = application.constructor as OpenSqlite;
    return new Database(main.file, { timeout: 0, fileMustExist: true });
  }
}

/**
 * The file may belong to a transaction of this very process: to wait within SQLite would never end.
 *
 * @returns whether the transaction has begun; else another one has the file
 */
function begin(connection: SqliteConnection, mayWait: boolean): boolean {
  try {
    connection.exec('BEGIN IMMEDIATE');
    return true;
  } catch (error) {
    if (mayWait && isBusy(error)) return false;
    throw error;
  }
}

function complete<T>(connection: SqliteConnection, work: Work<T>): T {
  try {
    let step = work.next();
    while (!step.done) step = work.next(execute(connection, step.value));
    connection.exec('COMMIT');
    return step.value;
  } catch (error) {
    if (connection.inTransaction) connection.exec('ROLLBACK');
    throw error;
  }
}

const isBusy = (error: unknown): boolean => String((error as { code?: unknown }).code).startsWith('SQLITE_BUSY');

function execute(connection: SqliteConnection, { text, values }: Statement): readonly SqlRow[] {
  const statement = connection.prepare(text);
  if (text.startsWith('SELECT')) return statement.all(...values) as SqlRow[];
  statement.run(...values);
  return [];
}

function runnerOfSqlite(tx: unknown): RunSql {
  if (!hasMethods(tx, ['prepare', 'exec'])) {
    throw new InvalidTaskError('sqliteOutbox needs the connection of the transaction, after its BEGIN');
  }
  const connection = tx as SqliteConnection;
  if (!connection.inTransaction) {
    throw new InvalidTaskError(
      'the connection has no open transaction: begin and end it by exec("BEGIN") and exec("COMMIT"), as db.transaction() ends before a promise resolves',
    );
  }
  return async (statement) => execute(connection, statement);
}
