import { randomUUID } from 'node:crypto';
import type { SqlDialect } from './dialect.js';
import { type Raw, raw, type Statement, statements } from './statement.js';
import { requireTable } from './table.js';

/** The id of a sender that only makes relays wait for each other while one makes the ordered sender, whose id begins so. */
export const ORDERED = 'ordered';

/** Queues that several databases fill know their senders apart. */
export const newOrderedId = (): string => `${ORDERED}-${randomUUID().replaceAll('-', '').slice(0, 28)}`;

export const isOrderedId = (id: string): boolean => id.startsWith(`${ORDERED}-`);

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
  /** What an UPDATE sets, before it sets the sender, so that a row is as it was written. */
  readonly renewed = raw(`state = CASE WHEN sender LIKE '${ORDERED}-%' THEN 'ordered' ELSE 'new' END`);

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

  /** @param into the target of an INSERT, and its values */
  ifAbsent(into: string): Statement {
    return { text: this.dialect.insertIfAbsent(into), values: [] };
  }

  /** Follows WHERE: the owner is gone. A lease that ends so late was written by a clock that was ahead. */
  get isFree(): Raw {
    const { now } = this;
    return raw(`(owned_until < ${now.text} OR owned_until > ${this.until(LONGEST_LEASE_MS).text})`);
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

/** Far longer than any lease: half a minute. */
const LONGEST_LEASE_MS = 600_000;

const micros = (milliseconds: number): string => String(Math.round(milliseconds * 1000));
