import { InvalidOptionError } from '../../errors.js';
import { REMOVED } from './row-states.js';

const TABLE = /^[a-z_][a-z0-9_]{0,40}(\.[a-z_][a-z0-9_]{0,40})?$/;

/** The names of indexes and channels begin with this: they stand in the schema of their table. */
export const indexPrefix = (table: string): string => table.replace('.', '_');

/** Indexes of the rows of one state each, for databases that have partial indexes. */
export const indexesOfStates = (table: string): readonly string[] => [
  `CREATE INDEX ${indexPrefix(table)}_new ON ${table} (id) WHERE state = 'new'`,
  `CREATE INDEX ${indexPrefix(table)}_ordered ON ${table} (id) WHERE state = 'ordered'`,
  `CREATE INDEX ${indexPrefix(table)}_taken ON ${table} (sender, number) WHERE state = 'taken'`,
  `CREATE INDEX ${indexPrefix(table)}_poisoned ON ${table} (id) WHERE state = 'poisoned'`,
  `CREATE INDEX ${indexPrefix(table)}_ended ON ${table} (ended_at) WHERE state IN (${REMOVED})`,
];

/** @throws InvalidOptionError */
export function requireTable(table: unknown): void {
  if (typeof table === 'string' && TABLE.test(table)) return;
  throw new InvalidOptionError(
    `the table of an outbox must have a name of small letters, digits and _, not ${JSON.stringify(table)}`,
  );
}
