import type { SqlDatabase, Work } from './database.js';
import { type RowCriteria, type RowPage, RowWork, type ShownRow } from './row-work.js';
import { SqlStore } from './sql-store.js';
import { Tables } from './tables.js';

/** Rows of one transaction. */
const ROWS_AT_ONCE = 500;

/** The rows of an outbox, for whoever looks after them without the application. */
export class OutboxRows {
  private readonly work: RowWork;

  private constructor(
    private readonly database: SqlDatabase,
    table: string,
  ) {
    this.work = new RowWork(new Tables(database.dialect, table));
  }

  /** @throws InvalidOptionError when the database cannot be reached, or the tables are missing */
  static async open(database: SqlDatabase, table = 'asynq_outbox'): Promise<OutboxRows> {
    const rows = new OutboxRows(database, table);
    await new SqlStore(database, { table }).check();
    return rows;
  }

  count(criteria: RowCriteria): Promise<number> {
    return this.database.transaction(this.work.count(criteria));
  }

  list(criteria: RowCriteria, page: RowPage): Promise<readonly ShownRow[]> {
    return this.database.transaction(this.work.list(criteria, page));
  }

  /** Has relays try poisoned rows once more. Returns how many. */
  retry(criteria: Omit<RowCriteria, 'state'>): Promise<number> {
    return this.inTurn((page) => this.work.retry(criteria, page));
  }

  /** Deletes rows, with their tasks where Redis does not have them. Returns how many. */
  delete(criteria: RowCriteria): Promise<number> {
    return this.inTurn((page) => this.work.delete(criteria, page));
  }

  /** By ids that grow: a row that is poisoned again meanwhile is not met twice. */
  private async inTurn(workOn: (page: RowPage) => Work<readonly number[]>): Promise<number> {
    let done = 0;
    for (let after = 0; ;) {
      const ids = await this.database.transaction(workOn({ after, limit: ROWS_AT_ONCE }));
      if (ids.length === 0) return done;
      done += ids.length;
      after = Math.max(...ids);
    }
  }
}
