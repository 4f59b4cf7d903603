import type { SqlDialect } from './dialect.js';

export type SqlValue = string | number | Buffer | null;

export interface Statement {
  readonly text: string;
  readonly values: readonly SqlValue[];
}

/**
 * Builds statements: values become parameters, an array a list of them, a `raw` text stands as it is.
 *
 * @example
 * const sql = statements(POSTGRES);
 * sql`SELECT id FROM ${raw(table)} WHERE state IN (${states}) LIMIT ${10}`
 */
export const statements =
  (dialect: SqlDialect) =>
  (parts: TemplateStringsArray, ...holes: readonly (SqlValue | readonly SqlValue[] | Raw)[]): Statement => {
    const values: SqlValue[] = [];
    const placed = (value: SqlValue): string => dialect.placeholder(values.push(value));
    const text = parts.reduce((done, part, index) => {
      const hole = holes[index - 1]!;
      if (hole instanceof Raw) return done + hole.text + part;
      return done + (Array.isArray(hole) ? hole.map(placed).join(', ') : placed(hole as SqlValue)) + part;
    });
    return { text, values };
  };

export class Raw {
  constructor(readonly text: string) {}
}

export const raw = (text: string): Raw => new Raw(text);
