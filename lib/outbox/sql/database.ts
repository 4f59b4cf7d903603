import type { SqlDialect } from './dialect.js';
import type { Statement } from './statement.js';

export type SqlRow = Readonly<Record<string, unknown>>;

/** Runs one statement; resolves with its rows, if it has any. */
export type RunSql = (statement: Statement) => Promise<readonly SqlRow[]>;

/** The statements of one transaction: each is yielded, and continues with its rows. SQLite runs them without a pause. */
export type Work<T> = Generator<Statement, T, readonly SqlRow[]>;

/** What a library for databases does for the store. */
export interface SqlDatabase {
  readonly dialect: SqlDialect;
  /** Loads what is only needed when the store is used. Called before all other methods. @throws InvalidOptionError */
  load?(): Promise<void>;
  /** Runs statements in a transaction of the application. @throws InvalidTaskError when `tx` is none */
  runnerOf(tx: unknown): RunSql;
  /** Does `work` in a transaction of its own (READ COMMITTED), which no transaction of the application is part of. */
  transaction<T>(work: Work<T>): Promise<T>;
  /** See OutboxStore.afterCommit. */
  readonly afterCommit?: ((tx: unknown, work: () => void) => void) | undefined;
  /** See OutboxStore.listen. */
  listen?(channel: string, onRows: () => void, onLost: () => void): Promise<() => Promise<void>>;
  /** See OutboxStore.close. */
  close?(): void;
}

/** Runs the statements one after the other. Rejects with what `run` rejects with. */
export async function perform<T>(work: Work<T>, run: RunSql): Promise<T> {
  let step = work.next();
  while (!step.done) step = work.next(await run(step.value));
  return step.value;
}

/** A work of one statement; its result are the rows. */
export function* only(statement: Statement): Work<readonly SqlRow[]> {
  return yield statement;
}
