import { randomUUID } from 'node:crypto';
import { InvalidOptionError } from '../../errors.js';
import type {
  EndedRow,
  EndState,
  ExchangeRequest,
  NewRow,
  OutboxCounts,
  OutboxStore,
  OwnedSender,
  TakenRow,
} from '../store.js';
import type { SqlDialect } from './dialect.js';
import { type Raw, raw, type SqlValue, type Statement, statements } from './statement.js';
import { indexPrefix, requireTable } from './table.js';

export type SqlRow = Readonly<Record<string, unknown>>;

/** Runs one statement; resolves with its rows, if it has any. */
export type RunSql = (statement: Statement) => Promise<readonly SqlRow[]>;

/** What a library for databases does for the store. */
export interface SqlDatabase {
  readonly dialect: SqlDialect;
  /** Runs statements in a transaction of the application. @throws InvalidTaskError when `tx` is none */
  runnerOf(tx: unknown): RunSql;
  /** Runs `work` in a transaction of its own (READ COMMITTED), on another connection than the application's. */
  transaction<T>(work: (run: RunSql) => Promise<T>): Promise<T>;
  /** See OutboxStore.listen. */
  listen?(channel: string, onRows: () => void, onLost: () => void): Promise<() => Promise<void>>;
}

/** Rows of one INSERT, and of one DELETE. */
const ROWS_PER_STATEMENT = 500;

const COLUMNS = ['id', 'queue', 'task_id', 'type', 'message', 'details', 'state'] as const;
const LATER_COLUMNS = ['sender', 'number', 'error', 'created_at', 'ended_at'] as const;

/** The outbox in two tables: rows, and senders (`<table>_senders`). */
export class SqlStore implements OutboxStore {
  readonly listen: OutboxStore['listen'];
  private readonly sql: ReturnType<typeof statements>;
  private readonly rows: Raw;
  private readonly senders: Raw;
  private readonly now: Raw;

  /** @throws InvalidOptionError when the name of the table is none */
  constructor(
    private readonly database: SqlDatabase,
    private readonly table = 'asynq_outbox',
  ) {
    requireTable(table);
    this.sql = statements(database.dialect);
    this.rows = raw(table);
    this.senders = raw(`${table}_senders`);
    this.now = raw(database.dialect.now);
    if (database.listen) this.listen = (onRows, onLost) => database.listen!(indexPrefix(table), onRows, onLost);
  }

  async check(): Promise<void> {
    const { sql, rows, senders } = this;
    const columns = raw([...COLUMNS, ...LATER_COLUMNS].join(', '));
    try {
      await this.database.transaction(async (run) => {
        await run(sql`SELECT ${columns} FROM ${rows} WHERE id < 0`);
        await run(sql`SELECT id, number, owner, owned_until FROM ${senders} WHERE number < 0`);
      });
    } catch (cause) {
      const reason = cause instanceof Error ? cause.message : String(cause);
      const { name } = this.database.dialect;
      throw new InvalidOptionError(
        `the tables "${this.table}" and "${this.table}_senders" of the outbox cannot be read (${reason}); ` +
          `create them by what "npx nestjs-asynq outbox sql --dialect ${name}" prints`,
        { cause },
      );
    }
  }

  async insert(tx: unknown, rows: readonly NewRow[]): Promise<void> {
    const run = this.database.runnerOf(tx);
    for (let first = 0; first < rows.length; first += ROWS_PER_STATEMENT) {
      await run(this.insertion(rows.slice(first, first + ROWS_PER_STATEMENT)));
    }
    const notify = this.database.dialect.notify?.(indexPrefix(this.table));
    if (notify) await run({ text: notify, values: [] });
  }

  takeSender(owner: string, lease: number): Promise<OwnedSender> {
    const { sql, senders, now } = this;
    return this.database.transaction(async (run) => {
      const [found] = await run(
        sql`SELECT id FROM ${senders} WHERE owner = ${owner} OR owned_until < ${now}
            ORDER BY CASE WHEN owner = ${owner} THEN 0 ELSE 1 END, id LIMIT 1 ${this.skipLocked}`,
      );
      if (found) return this.own(run, String(found['id']), owner, lease);
      const id = randomUUID();
      const until = raw(`${now.text} + ${micros(lease)}`);
      await run(sql`INSERT INTO ${senders} (id, number, owner, owned_until) VALUES (${id}, 0, ${owner}, ${until})`);
      return { id, rows: [] };
    });
  }

  takeOrphan(owner: string, lease: number): Promise<OwnedSender | undefined> {
    const { sql, senders, rows, now } = this;
    const taken = raw(`SELECT 1 FROM ${rows.text} r WHERE r.sender = s.id AND r.state = 'taken'`);
    return this.database.transaction(async (run) => {
      const [found] = await run(
        sql`SELECT s.id FROM ${senders} s WHERE s.owned_until < ${now} AND EXISTS (${taken})
            ORDER BY s.id LIMIT 1 ${this.skipLocked}`,
      );
      return found && this.own(run, String(found['id']), owner, lease);
    });
  }

  exchange(request: ExchangeRequest, lease: number): Promise<TakenRow[] | undefined> {
    const { sql, senders, now } = this;
    const { sender, owner, ended, take } = request;
    return this.database.transaction(async (run) => {
      const [own] = await run(
        sql`SELECT number, ${now} AS now FROM ${senders} WHERE id = ${sender} AND owner = ${owner} FOR UPDATE`,
      );
      if (!own) return undefined;
      await this.end(run, sender, ended);
      const rows =
        take > 0 ? await this.take(run, sender, Math.max(Number(own['number']), Number(own['now'])), request) : [];
      const number = rows.at(-1)?.number ?? Number(own['number']);
      const until = raw(`${now.text} + ${micros(lease)}`);
      await run(sql`UPDATE ${senders} SET number = ${number}, owned_until = ${until} WHERE id = ${sender}`);
      return rows;
    });
  }

  async release(sender: string, owner: string): Promise<void> {
    const { sql, senders } = this;
    await this.one(sql`UPDATE ${senders} SET owned_until = 0 WHERE id = ${sender} AND owner = ${owner}`);
  }

  async hasNew(except: readonly string[]): Promise<boolean> {
    const { sql, rows } = this;
    const found = await this.one(
      sql`SELECT id FROM ${rows} WHERE state = 'new' AND queue NOT IN (${others(except)}) LIMIT 1`,
    );
    return found.length > 0;
  }

  async counts(): Promise<OutboxCounts> {
    const { sql, rows, now } = this;
    const found = await this.one(
      sql`SELECT state, COUNT(*) AS count, ${now} - MIN(created_at) AS age FROM ${rows}
          WHERE state IN ('new', 'taken', 'poisoned') GROUP BY state`,
    );
    const of = (state: string) => found.find((row) => row['state'] === state);
    const count = (state: string): number => Number(of(state)?.['count'] ?? 0);
    const age = (state: string): number => Number(of(state)?.['age'] ?? 0) / 1000;
    return {
      fresh: count('new'),
      taken: count('taken'),
      poisoned: count('poisoned'),
      oldest: Math.max(0, age('new'), age('taken')),
    };
  }

  async purge(age: number, limit: number): Promise<number> {
    const { sql, rows, now } = this;
    return this.database.transaction(async (run) => {
      const found = await run(
        sql`SELECT id FROM ${rows} WHERE state IN ('sent', 'refused') AND ended_at < ${now} - ${raw(micros(age))}
            LIMIT ${raw(String(limit))} ${this.skipLocked}`,
      );
      if (found.length > 0) await run(sql`DELETE FROM ${rows} WHERE id IN (${found.map(({ id }) => String(id))})`);
      return found.length;
    });
  }

  async retryPoisoned(limit: number): Promise<number> {
    const { sql, rows } = this;
    return this.database.transaction(async (run) => {
      const found = await run(
        sql`SELECT id FROM ${rows} WHERE state = 'poisoned' ORDER BY id LIMIT ${raw(String(limit))} ${this.skipLocked}`,
      );
      if (found.length === 0) return 0;
      const ids = found.map(({ id }) => String(id));
      await run(
        sql`UPDATE ${rows} SET state = 'new', sender = NULL, number = NULL, error = NULL, ended_at = NULL WHERE id IN (${ids})`,
      );
      return ids.length;
    });
  }

  private get skipLocked(): Raw {
    return raw(this.database.dialect.skipLocked);
  }

  private one(statement: Statement): Promise<readonly SqlRow[]> {
    return this.database.transaction((run) => run(statement));
  }

  private insertion(rows: readonly NewRow[]): Statement {
    const { dialect } = this.database;
    const values: SqlValue[] = [];
    const lines = rows.map(({ queue, taskId, type, message, details }) => {
      const placed = [queue, taskId, type, message, details].map((value) => dialect.placeholder(values.push(value)));
      return `(${placed.join(', ')}, 'new', ${dialect.now})`;
    });
    const columns = 'queue, task_id, type, message, details, state, created_at';
    return { text: `INSERT INTO ${this.table} (${columns}) VALUES ${lines.join(', ')}`, values };
  }

  /** The sender, now the owner's, and its rows that are not ended. */
  private async own(run: RunSql, id: string, owner: string, lease: number): Promise<OwnedSender> {
    const { sql, senders, rows, now } = this;
    const until = raw(`${now.text} + ${micros(lease)}`);
    await run(sql`UPDATE ${senders} SET owner = ${owner}, owned_until = ${until} WHERE id = ${id}`);
    const found = await run(
      sql`SELECT id, number, queue, message, details FROM ${rows} WHERE sender = ${id} AND state = 'taken' ORDER BY number`,
    );
    return { id, rows: found.map(readRow) };
  }

  private async end(run: RunSql, sender: string, ended: readonly EndedRow[]): Promise<void> {
    const { sql, rows, now } = this;
    const byEnd = new Map<string, EndedRow[]>();
    for (const row of ended) {
      const name = `${row.state} ${row.error ?? ''}`;
      byEnd.set(name, [...(byEnd.get(name) ?? []), row]);
    }
    for (const group of byEnd.values()) {
      const { state, error = null } = group[0]!;
      const ids = group.map(({ id }) => String(id));
      await run(
        sql`UPDATE ${rows} SET state = ${state satisfies EndState}, error = ${error}, ended_at = ${now}
            WHERE id IN (${ids}) AND sender = ${sender} AND state = 'taken'`,
      );
    }
  }

  /** Numbers follow the ids, above all that the sender has had, and above the time: a restored database goes on. */
  private async take(
    run: RunSql,
    sender: string,
    above: number,
    { take, except }: ExchangeRequest,
  ): Promise<TakenRow[]> {
    const { sql, rows } = this;
    const found = await run(
      sql`SELECT id, queue, message, details FROM ${rows} WHERE state = 'new' AND queue NOT IN (${others(except)})
          ORDER BY id LIMIT ${raw(String(take))} ${this.skipLocked}`,
    );
    if (found.length === 0) return [];
    const offset = above + 1 - Number(found[0]!['id']);
    const ids = found.map(({ id }) => String(id));
    await run(
      sql`UPDATE ${rows} SET state = 'taken', sender = ${sender}, number = id + ${raw(String(offset))} WHERE id IN (${ids})`,
    );
    return found.map((row) => readRow({ ...row, number: Number(row['id']) + offset }));
  }
}

const micros = (milliseconds: number): string => String(Math.round(milliseconds * 1000));

/** No queue has an empty name. */
const others = (except: readonly string[]): readonly string[] => (except.length > 0 ? except : ['']);

const readRow = (row: SqlRow): TakenRow => ({
  id: Number(row['id']),
  number: Number(row['number']),
  queue: String(row['queue']),
  message: row['message'] as Buffer,
  details: String(row['details']),
});
