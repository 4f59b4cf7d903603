import { randomUUID } from 'node:crypto';
import {
  type EndedRow,
  type EndState,
  type ExchangeRequest,
  type OwnedSender,
  type TakenRow,
  type UnsentRow,
} from '../store.js';
import { only, type SqlRow, type Work } from './database.js';
import { REMOVED } from './row-states.js';
import { raw } from './statement.js';
import { isOrderedId, newOrderedId, ORDERED, type Tables } from './tables.js';

/** In characters, of which each has 4 bytes at most. */
const LONGEST_ERROR = 10_000;

/** What relays do in the database: each method is one transaction. */
export class RelayWork {
  constructor(private readonly tables: Tables) {}

  *takeSender(owner: string, lease: number): Work<OwnedSender> {
    const { sql, senders, isFree, skipLocked } = this.tables;
    const [found] =
      yield sql`SELECT id FROM ${senders} WHERE (owner = ${owner} OR ${isFree}) AND id NOT LIKE ${`${ORDERED}%`}
            ORDER BY CASE WHEN owner = ${owner} THEN 0 ELSE 1 END, id LIMIT 1 ${skipLocked}`;
    if (found) return yield* this.own(String(found['id']), owner, lease);
    return yield* this.make(randomUUID(), owner, lease);
  }

  *takeOrdered(owner: string, lease: number): Work<OwnedSender | undefined> {
    const { sql, senders, isFree, skipLocked, forUpdate } = this.tables;
    const [found] = yield sql`SELECT id FROM ${senders} WHERE id LIKE ${`${ORDERED}-%`}
            AND (owner = ${owner} OR ${isFree}) ${skipLocked}`;
    if (found) return yield* this.own(String(found['id']), owner, lease);
    const made = sql`SELECT id FROM ${senders} WHERE id LIKE ${`${ORDERED}-%`}`;
    if ((yield made).length > 0) return undefined;
    yield this.tables.ifAbsent(`${senders.text} (id, number, owner, owned_until) VALUES ('${ORDERED}', 0, '', 0)`);
    yield sql`SELECT id FROM ${senders} WHERE id = ${ORDERED} ${forUpdate}`;
    if ((yield made).length > 0) return undefined; // while this waited
    return yield* this.make(newOrderedId(), owner, lease);
  }

  *takeOrphan(owner: string, lease: number): Work<OwnedSender | undefined> {
    const { sql, senders, rows, isFree, skipLocked } = this.tables;
    const taken = raw(`SELECT 1 FROM ${rows.text} r WHERE r.sender = s.id AND r.state = 'taken'`);
    const [found] = yield sql`SELECT s.id FROM ${senders} s WHERE ${isFree} AND EXISTS (${taken})
            ORDER BY s.id LIMIT 1 ${skipLocked}`;
    return found && (yield* this.own(String(found['id']), owner, lease));
  }

  *exchange(request: ExchangeRequest, lease: number): Work<TakenRow[] | undefined> {
    const { sql, senders, now, forUpdate } = this.tables;
    const { sender, owner, ended, take } = request;
    const [own] =
      yield sql`SELECT number, ${now} AS now FROM ${senders} WHERE id = ${sender} AND owner = ${owner} ${forUpdate}`;
    if (!own) return undefined;
    yield* this.end(sender, ended);
    const above = Math.max(Number(own['number']), Number(own['now']));
    const rows = take > 0 ? yield* this.take(sender, above, request) : [];
    const number = rows.at(-1)?.number ?? Number(own['number']);
    yield sql`UPDATE ${senders} SET number = ${number}, owned_until = ${this.tables.until(lease)} WHERE id = ${sender}`;
    return rows;
  }

  release(sender: string, owner: string): Work<readonly SqlRow[]> {
    const { sql, senders } = this.tables;
    return only(sql`UPDATE ${senders} SET owned_until = 0 WHERE id = ${sender} AND owner = ${owner}`);
  }

  hasOrdered(): Work<readonly SqlRow[]> {
    const { sql, rows } = this.tables;
    const fresh = raw(`EXISTS (SELECT 1 FROM ${rows.text} WHERE state = 'ordered')`);
    const taken = raw(`EXISTS (SELECT 1 FROM ${rows.text} WHERE sender LIKE '${ORDERED}-%' AND state = 'taken')`);
    return only(sql`SELECT CASE WHEN ${fresh} OR ${taken} THEN 1 ELSE 0 END AS found`);
  }

  hasNew(except: readonly string[]): Work<readonly SqlRow[]> {
    const { sql, rows } = this.tables;
    return only(sql`SELECT id FROM ${rows} WHERE state = 'new' AND queue NOT IN (${others(except)}) LIMIT 1`);
  }

  /** By state, as each has an index of its own. */
  *unsent(taskIds: readonly string[]): Work<UnsentRow[]> {
    const { sql, rows } = this.tables;
    const found: UnsentRow[] = [];
    for (const state of ['new', 'ordered', 'taken']) {
      const some =
        yield sql`SELECT id, queue, task_id FROM ${rows} WHERE state = '${raw(state)}' AND task_id IN (${taskIds})`;
      for (const row of some)
        found.push({ id: Number(row['id']), queue: String(row['queue']), taskId: String(row['task_id']) });
    }
    return found;
  }

  *abandon(sender: string, owner: string): Work<void> {
    const { sql, senders, rows, forUpdate } = this.tables;
    const [own] = yield sql`SELECT id FROM ${senders} WHERE id = ${sender} AND owner = ${owner} ${forUpdate}`;
    if (!own) return;
    yield sql`UPDATE ${rows} SET ${this.tables.renewed}, sender = NULL, number = NULL WHERE sender = ${sender} AND state = 'taken'`;
    yield sql`DELETE FROM ${senders} WHERE id = ${sender}`;
  }

  *purge(age: number, limit: number): Work<number> {
    const { sql, rows, skipLocked } = this.tables;
    const found =
      yield sql`SELECT id FROM ${rows} WHERE state IN (${raw(REMOVED)}) AND ended_at < ${this.tables.since(age)}
            LIMIT ${raw(String(limit))} ${skipLocked}`;
    if (found.length > 0) yield sql`DELETE FROM ${rows} WHERE id IN (${found.map(({ id }) => String(id))})`;
    return found.length;
  }

  private *make(id: string, owner: string, lease: number): Work<OwnedSender> {
    const { sql, senders } = this.tables;
    const until = this.tables.until(lease);
    yield sql`INSERT INTO ${senders} (id, number, owner, owned_until) VALUES (${id}, 0, ${owner}, ${until})`;
    return { id, number: 0, rows: [] };
  }

  /** The sender, now the owner's, and its rows that are not ended. */
  private *own(id: string, owner: string, lease: number): Work<OwnedSender> {
    const { sql, senders, rows } = this.tables;
    yield sql`UPDATE ${senders} SET owner = ${owner}, owned_until = ${this.tables.until(lease)} WHERE id = ${id}`;
    const found =
      yield sql`SELECT id, number, queue, message, details FROM ${rows} WHERE sender = ${id} AND state = 'taken' ORDER BY number`;
    const [sender] = yield sql`SELECT number FROM ${senders} WHERE id = ${id}`;
    return { id, number: Number(sender!['number']), rows: found.map(readRow) };
  }

  private *end(sender: string, ended: readonly EndedRow[]): Work<void> {
    const { sql, rows, now } = this.tables;
    const byEnd = new Map<string, EndedRow[]>();
    for (const row of ended) {
      const name = `${row.state} ${row.error ?? ''}`;
      const group = byEnd.get(name);
      if (group) group.push(row);
      else byEnd.set(name, [row]);
    }
    for (const group of byEnd.values()) {
      const { state, error } = group[0]!;
      const ids = group.map(({ id }) => String(id));
      yield sql`UPDATE ${rows} SET state = ${state satisfies EndState}, error = ${storable(error)}, ended_at = ${now}
            WHERE id IN (${ids}) AND sender = ${sender} AND state = 'taken'`;
    }
  }

  /** Numbers follow the ids, above all that the sender has had, and above the time: a restored database goes on. */
  private *take(sender: string, above: number, { take, except }: ExchangeRequest): Work<TakenRow[]> {
    const { sql, rows, skipLocked } = this.tables;
    const state = isOrderedId(sender) ? 'ordered' : 'new';
    const found =
      yield sql`SELECT id, queue, message, details FROM ${rows} WHERE state = '${raw(state)}' AND queue NOT IN (${others(except)})
          ORDER BY id LIMIT ${raw(String(take))} ${skipLocked}`;
    if (found.length === 0) return [];
    const offset = above + 1 - Number(found[0]!['id']);
    const ids = found.map(({ id }) => String(id));
    yield sql`UPDATE ${rows} SET state = 'taken', sender = ${sender}, number = id + ${raw(String(offset))} WHERE id IN (${ids})`;
    return found.map((row) => readRow({ ...row, number: Number(row['id']) + offset }));
  }
}

/** MySQL has 64 KB for it, and PostgreSQL no character 0: a row whose end cannot be noted would hold up all others. */
const storable = (error: string | undefined): string | null =>
  error?.slice(0, LONGEST_ERROR).replaceAll('\0', '�') ?? null;

/** No queue has an empty name. */
const others = (except: readonly string[]): readonly string[] => (except.length > 0 ? except : ['']);

const readRow = (row: SqlRow): TakenRow => ({
  id: Number(row['id']),
  number: Number(row['number']),
  queue: String(row['queue']),
  message: bytesOf(row['message']),
  details: String(row['details']),
});

/** Libraries differ in how they give bytes. */
function bytesOf(value: unknown): Buffer {
  if (Buffer.isBuffer(value)) return value;
  if (ArrayBuffer.isView(value)) return Buffer.from(value.buffer, value.byteOffset, value.byteLength);
  return Buffer.from(value as ArrayBuffer);
}
