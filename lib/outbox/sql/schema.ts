import { InvalidOptionError } from '../../errors.js';
import { describe } from '../../validation.js';
import type { SqlDialect } from './dialect.js';
import { MYSQL } from './mysql.js';
import { POSTGRES } from './postgres.js';
import { SQLITE } from './sqlite.js';
import { requireTable } from './table.js';

/** `mysql` is for MariaDB, too. */
export type OutboxDialect = SqlDialect['name'];

const DIALECTS: Readonly<Record<OutboxDialect, SqlDialect>> = {
  postgres: POSTGRES,
  mysql: MYSQL,
  sqlite: SQLITE,
};

export const OUTBOX_DIALECTS = Object.keys(DIALECTS) as OutboxDialect[];

/**
 * The statements that make the tables of an outbox, for a migration.
 *
 * @param table default `asynq_outbox`
 * @throws InvalidOptionError
 */
export function outboxSchema(dialect: OutboxDialect, table = 'asynq_outbox'): readonly string[] {
  if (!OUTBOX_DIALECTS.includes(dialect)) {
    throw new InvalidOptionError(`the dialect must be one of ${OUTBOX_DIALECTS.join(', ')}, not ${describe(dialect)}`);
  }
  requireTable(table);
  if (dialect === 'sqlite' && table.includes('.')) {
    throw new InvalidOptionError(`a table of SQLite has no schema before its name: ${describe(table)}`);
  }
  const { createRows, createIndexes, createSenders } = DIALECTS[dialect];
  return [createRows(table), ...createIndexes(table), createSenders(table)];
}
