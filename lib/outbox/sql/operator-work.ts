import type { OutboxCounts, OutboxSender, PoisonedRow, PoisonedPage } from '../store.js';
import type { SqlRow, Work } from './database.js';
import { raw } from './statement.js';
import { ORDERED, type Tables } from './tables.js';

/** What people see of an outbox, and what they do with poisoned rows: each method is one transaction. */
export class OperatorWork {
  constructor(private readonly tables: Tables) {}

  *counts(): Work<OutboxCounts> {
    const { sql, rows, now } = this.tables;
    const found = yield sql`SELECT state, COUNT(*) AS count, ${now} - MIN(created_at) AS age FROM ${rows}
          WHERE state IN ('new', 'ordered', 'taken', 'poisoned') GROUP BY state`;
    const of = (state: string): SqlRow | undefined => found.find((row) => row['state'] === state);
    const count = (state: string): number => Number(of(state)?.['count'] ?? 0);
    const age = (state: string): number => Number(of(state)?.['age'] ?? 0) / 1000;
    return {
      fresh: count('new') + count('ordered'),
      taken: count('taken'),
      poisoned: count('poisoned'),
      oldest: Math.max(0, age('new'), age('ordered'), age('taken')),
    };
  }

  *senders(limit: number): Work<readonly OutboxSender[]> {
    const { sql, rows, senders, now } = this.tables;
    const taken = raw(`SELECT COUNT(*) FROM ${rows.text} r WHERE r.sender = s.id AND r.state = 'taken'`);
    const found =
      yield sql`SELECT id, owner, owned_until - ${now} AS lease, (${taken}) AS taken FROM ${senders} s WHERE id <> ${ORDERED}
          ORDER BY owned_until DESC, id LIMIT ${raw(String(limit))}`;
    return found.map((row) => {
      const lease = Number(row['lease']) / 1000;
      const owner = lease > 0 ? String(row['owner']) : undefined;
      return { id: String(row['id']), owner, lease: Math.max(0, lease), taken: Number(row['taken']) };
    });
  }

  *poisoned({ after = 0, limit }: PoisonedPage): Work<readonly PoisonedRow[]> {
    const { sql, rows, now } = this.tables;
    const found =
      yield sql`SELECT id, queue, task_id, type, error, ${now} - created_at AS age FROM ${rows} WHERE state = 'poisoned'
          AND id > ${after} ORDER BY id LIMIT ${raw(String(limit))}`;
    return found.map((row) => ({
      id: Number(row['id']),
      queue: String(row['queue']),
      taskId: String(row['task_id']),
      type: String(row['type']),
      error: String(row['error'] ?? ''),
      age: Math.max(0, Number(row['age']) / 1000),
    }));
  }

  *retryPoisoned(limit: number, ids?: readonly number[]): Work<number> {
    const { sql, rows } = this.tables;
    const chosen = yield* this.lockPoisoned(limit, ids);
    if (chosen.length === 0) return 0;
    yield sql`UPDATE ${rows} SET ${this.tables.renewed}, sender = NULL, number = NULL, error = NULL, ended_at = NULL WHERE id IN (${chosen})`;
    return chosen.length;
  }

  *dropPoisoned(ids: readonly number[]): Work<number> {
    const { sql, rows } = this.tables;
    const chosen = yield* this.lockPoisoned(ids.length, ids);
    if (chosen.length > 0) yield sql`DELETE FROM ${rows} WHERE id IN (${chosen})`;
    return chosen.length;
  }

  private *lockPoisoned(limit: number, ids?: readonly number[]): Work<readonly string[]> {
    const { sql, rows, skipLocked } = this.tables;
    if (ids?.length === 0) return [];
    const most = raw(String(limit));
    const found = ids
      ? yield sql`SELECT id FROM ${rows} WHERE state = 'poisoned' AND id IN (${ids.map(String)}) ${skipLocked}`
      : yield sql`SELECT id FROM ${rows} WHERE state = 'poisoned' ORDER BY id LIMIT ${most} ${skipLocked}`;
    return found.map(({ id }) => String(id));
  }
}
