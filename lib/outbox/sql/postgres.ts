import type { SqlDialect } from './dialect.js';
import { indexesOfStates } from './table.js';

/** PostgreSQL 12 or later. */
export const POSTGRES: SqlDialect = {
  name: 'postgres',
  placeholder: (n) => `$${n}`,
  now: '(EXTRACT(EPOCH FROM clock_timestamp()) * 1000000)::bigint',
  skipLocked: 'FOR UPDATE SKIP LOCKED',
  forUpdate: 'FOR UPDATE',
  insertIfAbsent: (into) => `INSERT INTO ${into} ON CONFLICT DO NOTHING`,
  createRows: (table) => `CREATE TABLE ${table} (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  queue text NOT NULL,
  task_id text NOT NULL,
  type text NOT NULL,
  message bytea NOT NULL,
  details text NOT NULL,
  state varchar(8) NOT NULL,
  sender varchar(36),
  number bigint,
  error text,
  created_at bigint NOT NULL,
  ended_at bigint
)`,
  createIndexes: indexesOfStates,
  createSenders: (table) => `CREATE TABLE ${table}_senders (
  id varchar(36) PRIMARY KEY,
  number bigint NOT NULL,
  owner varchar(36) NOT NULL,
  owned_until bigint NOT NULL
)`,
  indexesOf: (table) =>
    `SELECT c.relname::text AS name FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid WHERE i.indrelid = '${table}'::regclass AND i.indisvalid`,
  withNotice: (insert, channel) => `WITH inserted AS (${insert}) SELECT pg_notify('${channel}', '')`,
};
