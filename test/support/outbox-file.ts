import { rmSync } from 'node:fs';
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { DynamicModule } from '@nestjs/common';
import Database from 'libsql';
import { AsynqOutboxModule, outboxSchema, sqliteOutbox } from 'nestjs-asynq/outbox';

/** An outbox in a file of SQLite, with rows that somebody has to look at. */
export class OutboxFile {
  private constructor(
    private readonly dir: string,
    private readonly db: InstanceType<typeof Database>,
    /** Without a relay: rows stay as they are. */
    readonly module: DynamicModule,
  ) {}

  static async create(): Promise<OutboxFile> {
    const dir = await mkdtemp(join(tmpdir(), 'outbox-test-'));
    const db = new Database(join(dir, 'app.db'));
    for (const statement of outboxSchema('sqlite')) db.exec(statement);
    return new OutboxFile(dir, db, AsynqOutboxModule.forRoot({ store: sqliteOutbox(db), relay: false }));
  }

  /** Nothing but this poisoned row. */
  poison(id: number, queue: string, error = 'row cannot be read'): void {
    this.db.exec('DELETE FROM asynq_outbox');
    this.add(id, queue, 'poisoned', error);
  }

  add(id: number, queue: string, state: string, error: string | null = null): void {
    const columns = 'id, queue, task_id, type, message, details, state, error, created_at';
    this.db
      .prepare(`INSERT INTO asynq_outbox (${columns}) VALUES (?, ?, 'task', 'mail', 'x', '{}', ?, ?, 0)`)
      .run(id, queue, state, error);
  }

  /** The states of the rows. */
  get states(): string[] {
    return (this.db.prepare('SELECT state FROM asynq_outbox ORDER BY id').all() as { state: string }[]).map(
      ({ state }) => state,
    );
  }

  exec(text: string): void {
    this.db.exec(text);
  }

  close(): void {
    this.db.close();
    rmSync(this.dir, { recursive: true });
  }
}
