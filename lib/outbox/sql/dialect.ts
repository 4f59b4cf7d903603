/** What differs between databases. Everything else is the same SQL: see SqlStore. */
export interface SqlDialect {
  readonly name: 'postgres' | 'mysql' | 'sqlite';
  /** The placeholder of the nth parameter, from 1. */
  placeholder(n: number): string;
  /** An expression: microseconds since the epoch by the database's clock. */
  readonly now: string;
  /** What follows a SELECT whose rows no other transaction may take, and that skips those of others. */
  readonly skipLocked: string;
  /** What follows a SELECT whose rows other transactions wait for. */
  readonly forUpdate: string;
  /** An INSERT of this target and these values that does nothing where there is such a row. */
  insertIfAbsent(into: string): string;
  /** Makes the table of rows. */
  createRows(table: string): string;
  /** Make its indexes. */
  createIndexes(table: string): readonly string[];
  /** Makes the table of senders. */
  createSenders(table: string): string;
  /** A SELECT of the names of the indexes that the table of rows has. */
  indexesOf(table: string): string;
  /** The same INSERT, which notifies relays when it is committed. Absent: the database has no notices. */
  withNotice?(insert: string, channel: string): string;
}
