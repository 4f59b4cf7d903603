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
  schema: (table) => [
    `CREATE TABLE ${table} (
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
  ended_at bigint,
  KEY ${indexPrefix(table)}_state (state, id),
  KEY ${indexPrefix(table)}_taken (sender, state, number),
  KEY ${indexPrefix(table)}_ended (state, ended_at)
) ENGINE = InnoDB`,
    `CREATE TABLE ${table}_senders (
  id varchar(36) CHARACTER SET ascii COLLATE ascii_bin NOT NULL PRIMARY KEY,
  number bigint NOT NULL,
  owner varchar(36) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  owned_until bigint NOT NULL
) ENGINE = InnoDB`,
  ],
};
