import { only, type SqlRow, type Work } from './database.js';
import { type Raw, raw, type SqlValue } from './statement.js';
import type { RowState } from './row-states.js';
import type { Tables } from './tables.js';

/** Which rows are meant; what is not given is all. */
export interface RowCriteria {
  readonly state: RowState;
  readonly ids?: readonly number[] | undefined;
  readonly queue?: string | undefined;
  /** Text in the error. */
  readonly error?: string | undefined;
  /** Written so many milliseconds ago at least. */
  readonly olderThan?: number | undefined;
}

/** A row as operators see it. */
export interface ShownRow {
  readonly id: number;
  readonly queue: string;
  readonly taskId: string;
  readonly type: string;
  readonly state: RowState;
  readonly error: string | undefined;
  /** Milliseconds since it was written. */
  readonly age: number;
}

/** Rows after an id, in the order of their ids. */
export interface RowPage {
  readonly after: number;
  readonly limit: number;
}

/** Finds and changes rows by criteria, for the command line: each method is one transaction. */
export class RowWork {
  constructor(private readonly tables: Tables) {}

  *count(criteria: RowCriteria): Work<number> {
    const [found] = yield this.select(raw('COUNT(*) AS count'), criteria);
    return Number(found?.['count'] ?? 0);
  }

  *list(criteria: RowCriteria, page: RowPage): Work<readonly ShownRow[]> {
    const columns = raw(`id, queue, task_id, type, error, ${this.tables.now.text} - created_at AS age`);
    const found = yield this.select(columns, criteria, page);
    return found.map((row) => ({
      id: Number(row['id']),
      queue: String(row['queue']),
      taskId: String(row['task_id']),
      type: String(row['type']),
      state: criteria.state,
      error: typeof row['error'] === 'string' ? row['error'] : undefined,
      age: Math.max(0, Number(row['age']) / 1000),
    }));
  }

  /** Makes poisoned rows new. Returns their ids; none when there are no more. */
  *retry(criteria: Omit<RowCriteria, 'state'>, page: RowPage): Work<readonly number[]> {
    const { sql, rows } = this.tables;
    const ids = idsOf(yield this.lock({ ...criteria, state: 'poisoned' }, page));
    if (ids.length > 0) {
      yield sql`UPDATE ${rows} SET ${this.tables.renewed}, sender = NULL, number = NULL, error = NULL, ended_at = NULL
            WHERE id IN (${ids.map(String)})`;
    }
    return ids;
  }

  /** Deletes rows. Returns their ids; none when there are no more. */
  *delete(criteria: RowCriteria, page: RowPage): Work<readonly number[]> {
    const { sql, rows } = this.tables;
    const ids = idsOf(yield this.lock(criteria, page));
    if (ids.length > 0) yield* only(sql`DELETE FROM ${rows} WHERE id IN (${ids.map(String)})`);
    return ids;
  }

  /** Rows that a relay has locked are its own. */
  private lock(criteria: RowCriteria, page: RowPage) {
    const found = this.select(raw('id'), criteria, page);
    return { ...found, text: `${found.text} ${this.tables.skipLocked.text}` };
  }

  private select(columns: Raw, { state, ids, queue, error, olderThan }: RowCriteria, page?: RowPage) {
    const { sql, rows } = this.tables;
    const conditions: [start: string, value: SqlValue | readonly SqlValue[], end: string][] = [['state = ', state, '']];
    if (ids) conditions.push(['id IN (', ids.map(String), ')']);
    if (queue !== undefined) conditions.push(['queue = ', queue, '']);
    if (error !== undefined) conditions.push(['error LIKE ', `%${error.replace(/[!%_]/g, '!$&')}%`, ` ESCAPE '!'`]);
    if (olderThan !== undefined) conditions.push([`created_at <= ${this.tables.since(olderThan).text}`, [], '']);
    if (page) conditions.push(['id > ', String(page.after), '']);
    const holes = conditions.flatMap(([start, value, end], index) => [
      raw(index > 0 ? ` AND ${start}` : start),
      value,
      raw(end),
    ]);
    const tail = raw(page ? ` ORDER BY id LIMIT ${page.limit}` : '');
    const all = [columns, rows, ...holes, tail];
    const parts = ['SELECT ', ' FROM ', ' WHERE ', ...all.slice(2).map(() => '')];
    return sql(parts as unknown as TemplateStringsArray, ...all);
  }
}

const idsOf = (found: readonly SqlRow[]): number[] => found.map(({ id }) => Number(id));
