import type { SqlDialect } from './dialect.js';
import { type Raw, raw, statements } from './statement.js';
import { requireTable } from './table.js';

/** What every statement of an outbox names: its two tables, and the words of its database. */
export class Tables {
  readonly sql: ReturnType<typeof statements>;
  readonly rows: Raw;
  readonly senders: Raw;
  /** Microseconds since the epoch by the database's clock. */
  readonly now: Raw;
  /** Follows a SELECT whose rows no other transaction may take. */
  readonly skipLocked: Raw;
  readonly forUpdate: Raw;

  /** @throws InvalidOptionError when the name of the table is none */
  constructor(
    readonly dialect: SqlDialect,
    readonly name: string,
  ) {
    requireTable(name);
    this.sql = statements(dialect);
    this.rows = raw(name);
    this.senders = raw(`${name}_senders`);
    this.now = raw(dialect.now);
    this.skipLocked = raw(dialect.skipLocked);
    this.forUpdate = raw(dialect.forUpdate);
  }

  /** @param milliseconds from now */
  until(milliseconds: number): Raw {
    return raw(`${this.now.text} + ${micros(milliseconds)}`);
  }

  /** @param milliseconds before now */
  since(milliseconds: number): Raw {
    return raw(`${this.now.text} - ${micros(milliseconds)}`);
  }
}

const micros = (milliseconds: number): string => String(Math.round(milliseconds * 1000));
