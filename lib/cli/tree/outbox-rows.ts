import { Option } from 'commander';
import type { OutboxRows } from '../../outbox/sql/outbox-rows.js';
import type { CommandContext } from './command-context.js';

/** The flags of commands that work in the database of an outbox. */
export interface DatabaseFlags {
  readonly database?: string;
  readonly table?: string;
}

export const tableOption = (): Option => new Option('--table <name>', 'the table of rows (default: asynq_outbox)');

export const databaseOptions = (): Option[] => [
  new Option(
    '--database <url>',
    'postgres://…, mysql://…, mariadb://… or sqlite:app.db; better given by ASYNQ_DATABASE',
  ),
  tableOption(),
];

/** Connects, has `use` do its work, and closes the connection. */
export async function withRows<Flags extends DatabaseFlags>(
  { options, terminal }: CommandContext<Flags>,
  use: (rows: OutboxRows) => Promise<void>,
): Promise<void> {
  const [{ openOutboxDatabase }, { OutboxRows }] = await Promise.all([
    import('../connection/outbox-database.js'),
    import('../../outbox/sql/outbox-rows.js'),
  ]);
  const { database, close } = await openOutboxDatabase(options.database ?? terminal.env['ASYNQ_DATABASE']);
  try {
    await use(await OutboxRows.open(database, options.table));
  } finally {
    await close();
  }
}
