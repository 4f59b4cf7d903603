import type { SqlDialect } from './dialect.js';
import { indexesOfStates } from './table.js';

/** SQLite 3.35 or later. There is one transaction that writes at a time: nothing has to be locked row by row. */
export const SQLITE: SqlDialect = {
  name: 'sqlite',
  placeholder: () => '?',
  now: "CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)",
  skipLocked: '',
  forUpdate: '',
  insertIfAbsent: (into) => `INSERT INTO ${into} ON CONFLICT DO NOTHING`,
  createRows: (table) => `CREATE TABLE ${table} (
  id integer PRIMARY KEY AUTOINCREMENT,
  queue text NOT NULL,
  task_id text NOT NULL,
  type text NOT NULL,
  message blob NOT NULL,
  details text NOT NULL,
  state text NOT NULL,
  sender text,
  number integer,
  error text,
  created_at integer NOT NULL,
  ended_at integer
)`,
  createIndexes: indexesOfStates,
  createSenders: (table) => `CREATE TABLE ${table}_senders (
  id text PRIMARY KEY,
  number integer NOT NULL,
  owner text NOT NULL,
  owned_until integer NOT NULL
)`,
  indexesOf: (table) => `SELECT name FROM sqlite_master WHERE type = 'index' AND tbl_name = '${table}'`,
};
