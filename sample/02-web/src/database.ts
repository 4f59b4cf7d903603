import { fileURLToPath } from 'node:url';
import { Global, Inject, Module, type OnModuleDestroy } from '@nestjs/common';
import { CompiledQuery, Kysely, Migrator, PostgresDialect, SqliteDialect } from 'kysely';
import Database from 'libsql';
import { outboxSchema } from 'nestjs-asynq/outbox';
import pg from 'pg';

interface Tables {
  signups: { email: string; name: string; task_id: string };
}

/** The database of the web process. */
export class SignupDatabase extends Kysely<Tables> {}

/** Without DATABASE_URL, SQLite in a file beside the compiled sample. */
const databaseUrl = process.env.DATABASE_URL;
const file = fileURLToPath(new URL('../../signups.db', import.meta.url));

function open(): SignupDatabase {
  if (databaseUrl) return new SignupDatabase({ dialect: new PostgresDialect({ pool: postgresPool(databaseUrl) }) });
  const database = new Database(file);
  database.pragma('journal_mode = WAL');
  return new SignupDatabase({ dialect: new SqliteDialect({ database }) });
}

function postgresPool(connectionString: string): pg.Pool {
  const pool = new pg.Pool({ connectionString });
  // A connection that is lost is an error of the pool, or of the client that is in use: without listeners it ends the process.
  const log = (error: Error): void => console.error(`PostgreSQL: ${error.message}`);
  pool.on('error', log);
  pool.on('connect', (client) => client.on('error', log));
  return pool;
}

/** The tables of the outbox come with a migration, like all others. */
async function migrate(db: SignupDatabase): Promise<void> {
  const up = async (on: Kysely<unknown>): Promise<void> => {
    await on.schema
      .createTable('signups')
      .addColumn('email', 'varchar(320)', (column) => column.primaryKey())
      .addColumn('name', 'varchar(80)', (column) => column.notNull())
      .addColumn('task_id', 'varchar(36)', (column) => column.notNull().unique())
      .execute();
    for (const statement of outboxSchema(databaseUrl ? 'postgres' : 'sqlite')) {
      await on.executeQuery(CompiledQuery.raw(statement));
    }
  };
  const provider = { getMigrations: async () => ({ '001-signups-and-outbox': { up } }) };
  const { error } = await new Migrator({ db, provider }).migrateToLatest();
  if (error) throw error;
}

@Global()
@Module({
  providers: [
    {
      provide: SignupDatabase,
      useFactory: async () => {
        const db = open();
        await migrate(db);
        return db;
      },
    },
  ],
  exports: [SignupDatabase],
})
export class DatabaseModule implements OnModuleDestroy {
  constructor(@Inject(SignupDatabase) private readonly db: SignupDatabase) {}

  async onModuleDestroy(): Promise<void> {
    await this.db.destroy();
  }
}
