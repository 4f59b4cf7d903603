import { type Command, Option } from 'commander';
import { OUTBOX_DIALECTS, type OutboxDialect, outboxSchema } from '../../outbox/sql/schema.js';
import { tableOption } from '../tree/outbox-rows.js';
import { addCommand, addGroup, type Invocation } from '../tree/tree.js';
import { addOutboxRows } from './outbox-rows.js';

interface SchemaFlags {
  readonly dialect: OutboxDialect;
  readonly table?: string;
}

export function addOutboxCommands(root: Command, invocation: Invocation): void {
  const group = addGroup(root, 'outbox', 'the outbox in a database: its tables and rows');
  addCommand<SchemaFlags>(group, invocation, {
    usage: 'sql',
    summary: 'print the SQL that makes the tables of an outbox; it connects to nothing',
    options: [
      new Option('--dialect <name>', 'the database; mysql is for MariaDB, too')
        .choices(OUTBOX_DIALECTS)
        .makeOptionMandatory(),
      tableOption(),
    ],
    examples: ['outbox sql --dialect postgres', 'outbox sql --dialect mysql --table mail_outbox'],
    run: (context) => {
      const { dialect, table } = context.options;
      for (const statement of outboxSchema(dialect, table)) context.print(`${statement};\n`);
    },
  });
  addOutboxRows(group, invocation);
}
