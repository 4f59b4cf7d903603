import { InvalidOptionError } from '../../errors.js';

const TABLE = /^[a-z_][a-z0-9_]{0,40}(\.[a-z_][a-z0-9_]{0,40})?$/;

/** The names of indexes and channels begin with this: they stand in the schema of their table. */
export const indexPrefix = (table: string): string => table.replace('.', '_');

/** @throws InvalidOptionError */
export function requireTable(table: unknown): void {
  if (typeof table === 'string' && TABLE.test(table)) return;
  throw new InvalidOptionError(
    `the table of an outbox must have a name of small letters, digits and _, not ${JSON.stringify(table)}`,
  );
}
