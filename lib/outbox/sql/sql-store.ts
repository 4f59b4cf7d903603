import { InvalidOptionError } from '../../errors.js';
import type {
  ExchangeRequest,
  NewRow,
  OutboxCounts,
  OutboxSender,
  OutboxStore,
  OwnedSender,
  PoisonedPage,
  PoisonedRow,
  TakenRow,
  UnsentRow,
} from '../store.js';
import { only, type SqlDatabase, type Work } from './database.js';
import { OperatorWork } from './operator-work.js';
import { RelayWork } from './relay-work.js';
import { raw, type SqlValue, type Statement } from './statement.js';
import { indexPrefix } from './table.js';
import { Tables } from './tables.js';

/** Rows of one INSERT. */
const ROWS_PER_STATEMENT = 500;

/** PostgreSQL cuts longer names. */
const POSTGRES_NAME_LENGTH = 63;

/** Senders that are shown. */
const MOST_SENDERS = 100;

const COLUMNS = raw('id, queue, task_id, type, message, details, state, sender, number, error, created_at, ended_at');

export interface SqlStoreOptions {
  /** Default `asynq_outbox`. */
  readonly table?: string | undefined;
  /** In place of that of the database; `false`: there are no notices. */
  readonly listen?: SqlDatabase['listen'] | false;
}

/** The outbox in two tables: rows, and senders (`<table>_senders`). */
export class SqlStore implements OutboxStore {
  readonly listen?: NonNullable<OutboxStore['listen']>;
  readonly afterCommit?: NonNullable<OutboxStore['afterCommit']>;
  private readonly tables: Tables;
  private readonly relay: RelayWork;
  private readonly operator: OperatorWork;

  /** @throws InvalidOptionError when the name of the table is none, or the database has no notices */
  constructor(
    private readonly database: SqlDatabase,
    { table = 'asynq_outbox', listen }: SqlStoreOptions = {},
  ) {
    this.tables = new Tables(database.dialect, table);
    this.relay = new RelayWork(this.tables);
    this.operator = new OperatorWork(this.tables);
    if (listen && !database.dialect.withNotice) {
      throw new InvalidOptionError(`option listen is for PostgreSQL; ${database.dialect.name} has no notices`);
    }
    const listening = listen ?? database.listen?.bind(database);
    if (listening) this.listen = (onRows, onLost) => listening(indexPrefix(table), onRows, onLost);
    if (database.afterCommit) this.afterCommit = database.afterCommit.bind(database);
  }

  async check(): Promise<void> {
    const { sql, rows, senders, name, dialect } = this.tables;
    await this.database.load?.();
    try {
      await this.database.transaction(only(sql`SELECT 1 AS one`));
    } catch (cause) {
      if (cause instanceof InvalidOptionError) throw cause;
      throw new InvalidOptionError(`the database of the outbox cannot be reached (${reasonOf(cause)})`, { cause });
    }
    try {
      await this.database.transaction(only(sql`SELECT ${COLUMNS} FROM ${rows} WHERE id < 0`));
      await this.database.transaction(
        only(sql`SELECT id, number, owner, owned_until FROM ${senders} WHERE number < 0`),
      );
    } catch (cause) {
      throw new InvalidOptionError(
        `the tables "${name}" and "${name}_senders" of the outbox are missing or of another version (${reasonOf(cause)}); ` +
          `create them by what "npx nestjs-asynq outbox sql --dialect ${dialect.name}" prints`,
        { cause },
      );
    }
    await this.checkIndexes();
  }

  async insert(tx: unknown, rows: readonly NewRow[]): Promise<void> {
    const run = this.database.runnerOf(tx);
    const { dialect, name } = this.tables;
    for (let first = 0; first < rows.length; first += ROWS_PER_STATEMENT) {
      const last = first + ROWS_PER_STATEMENT;
      const { text, values } = this.insertion(rows.slice(first, last));
      const withNotice = last < rows.length ? undefined : dialect.withNotice?.(text, indexPrefix(name));
      await run({ text: withNotice ?? text, values });
    }
  }

  unsent(taskIds: readonly string[]): Promise<UnsentRow[]> {
    return this.do(this.relay.unsent(taskIds));
  }

  takeSender(owner: string, lease: number): Promise<OwnedSender> {
    return this.do(this.relay.takeSender(owner, lease));
  }

  takeOrdered(owner: string, lease: number): Promise<OwnedSender | undefined> {
    return this.do(this.relay.takeOrdered(owner, lease));
  }

  takeOrphan(owner: string, lease: number): Promise<OwnedSender | undefined> {
    return this.do(this.relay.takeOrphan(owner, lease));
  }

  exchange(request: ExchangeRequest, lease: number): Promise<TakenRow[] | undefined> {
    return this.do(this.relay.exchange(request, lease));
  }

  async release(sender: string, owner: string): Promise<void> {
    await this.do(this.relay.release(sender, owner));
  }

  abandon(sender: string, owner: string): Promise<void> {
    return this.do(this.relay.abandon(sender, owner));
  }

  async hasNew(except: readonly string[]): Promise<boolean> {
    return (await this.do(this.relay.hasNew(except))).length > 0;
  }

  async hasOrdered(): Promise<boolean> {
    const [row] = await this.do(this.relay.hasOrdered());
    return Number(row?.['found']) === 1;
  }

  purge(age: number, limit: number): Promise<number> {
    return this.do(this.relay.purge(age, limit));
  }

  counts(): Promise<OutboxCounts> {
    return this.do(this.operator.counts());
  }

  senders(): Promise<readonly OutboxSender[]> {
    return this.do(this.operator.senders(MOST_SENDERS));
  }

  poisoned(page: PoisonedPage): Promise<readonly PoisonedRow[]> {
    return this.do(this.operator.poisoned(page));
  }

  retryPoisoned(limit: number, ids?: readonly number[]): Promise<number> {
    return this.do(this.operator.retryPoisoned(limit, ids));
  }

  dropPoisoned(ids: readonly number[]): Promise<number> {
    return this.do(this.operator.dropPoisoned(ids));
  }

  close(): void {
    this.database.close?.();
  }

  /** Nothing fails without an index, but relays read the whole table again and again. */
  private async checkIndexes(): Promise<void> {
    const { dialect, name } = this.tables;
    const rows = await this.do(only({ text: dialect.indexesOf(name), values: [] }));
    const found = new Set(rows.map((row) => String(row['name'])));
    const missing = dialect.createIndexes(name).filter((statement) => {
      const index = statement.split(' ', 3)[2]!;
      return !found.has(index) && !found.has(index.slice(0, POSTGRES_NAME_LENGTH));
    });
    if (missing.length === 0) return;
    const names = missing.map((statement) => `"${statement.split(' ', 3)[2]}"`).join(', ');
    throw new InvalidOptionError(
      `the table "${name}" of the outbox has no index ${names}: an older version has made it; run ${missing.join('; ')}`,
    );
  }

  private do<T>(work: Work<T>): Promise<T> {
    return this.database.transaction(work);
  }

  private insertion(rows: readonly NewRow[]): Statement {
    const { dialect, name, now } = this.tables;
    const values: SqlValue[] = [];
    const lines = rows.map(({ queue, taskId, type, message, details, ordered }) => {
      const placed = [queue, taskId, type, message, details].map((value) => dialect.placeholder(values.push(value)));
      return `(${placed.join(', ')}, '${ordered ? 'ordered' : 'new'}', ${now.text})`;
    });
    const columns = 'queue, task_id, type, message, details, state, created_at';
    return { text: `INSERT INTO ${name} (${columns}) VALUES ${lines.join(', ')}`, values };
  }
}

/** Drizzle and others put what the database says into the cause of their own error, Prisma on several lines. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error ? reasonOf(error.cause) : error.message.trim().replace(/\s+/g, ' ');
}
