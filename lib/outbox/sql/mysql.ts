import type { SqlDialect } from './dialect.js';
import { indexPrefix } from './table.js';

/** MySQL 8 or MariaDB 10.6, or later. */
export const MYSQL: SqlDialect = {
  name: 'mysql',
  placeholder: () => '?',
  now: 'CAST(UNIX_TIMESTAMP() * 1000000 AS SIGNED)',
  skipLocked: 'FOR UPDATE SKIP LOCKED',
  forUpdate: 'FOR UPDATE',
  insertIfAbsent: (into) => `INSERT IGNORE INTO ${into}`,
  createRows: (table) => `CREATE TABLE ${table} (
  id bigint NOT NULL AUTO_INCREMENT PRIMARY KEY,
  queue text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  task_id text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  type text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  message longblob NOT NULL,
  details longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  state varchar(8) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  sender varchar(36) CHARACTER SET ascii COLLATE ascii_bin,
  number bigint,
  error text CHARACTER SET utf8mb4,
  created_at bigint NOT NULL,
  ended_at bigint
) ENGINE = InnoDB`,
  createIndexes: (table) => [
    `CREATE INDEX ${indexPrefix(table)}_state ON ${table} (state, id)`,
    `CREATE INDEX ${indexPrefix(table)}_taken ON ${table} (sender, state, number)`,
    `CREATE INDEX ${indexPrefix(table)}_ended ON ${table} (state, ended_at)`,
  ],
  createSenders: (table) => `CREATE TABLE ${table}_senders (
  id varchar(36) CHARACTER SET ascii COLLATE ascii_bin NOT NULL PRIMARY KEY,
  number bigint NOT NULL,
  owner varchar(36) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  owned_until bigint NOT NULL
) ENGINE = InnoDB`,
  indexesOf: (table) => {
    const [name, schema] = table.split('.').reverse();
    return `SELECT DISTINCT index_name AS name FROM information_schema.statistics WHERE table_name = '${name}' AND table_schema = ${schema ? `'${schema}'` : 'DATABASE()'}`;
  },
};
