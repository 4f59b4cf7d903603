import { type Command, Option } from 'commander';
import { BatchNotFoundError } from '../../errors.js';
import type { BatchInfo } from '../../task/batch.js';
import { plain } from '../output/text.js';
import { formatMoment } from '../../words/when.js';
import type { CommandContext } from '../tree/command-context.js';
import { addCommand, addGroup, type Invocation } from '../tree/tree.js';
import { jsonOption, pageOptions, queueOption } from '../tree/values.js';

interface ListFlags {
  readonly queue?: string;
  readonly page?: number;
  readonly size: number;
  readonly json?: boolean;
}

interface OneFlags {
  readonly queue: string;
  readonly json?: boolean;
}

const homeOption = (): Option => queueOption('the queue in which the batch was opened');

export function addBatchCommands(root: Command, invocation: Invocation): void {
  const group = addGroup(root, 'batch', 'show and end batches');
  addCommand<ListFlags>(group, invocation, {
    usage: 'list',
    aliases: ['ls'],
    summary: 'list batches with their progress, newest first',
    options: [
      new Option('-q, --queue <name>', 'only those opened in this queue (default: all)'),
      ...pageOptions(),
      jsonOption(),
    ],
    examples: ['batch list', 'batch list -q imports --page 2'],
    run: listBatches,
  });
  addCommand<OneFlags>(group, invocation, {
    usage: 'inspect <batch...>',
    summary: 'show how far batches are',
    options: [homeOption(), jsonOption()],
    examples: ['batch inspect -q default batch-3q2K0sW8Zx1uV7yJt5mA4g'],
    run: inspectBatches,
  });
  addCommand<OneFlags>(group, invocation, {
    usage: 'close <batch...>',
    summary: 'close batches that nobody adds to any more',
    details: 'What is added by members still counts. The callbacks come when all members have ended.',
    options: [homeOption()],
    examples: ['batch close -q default batch-3q2K0sW8Zx1uV7yJt5mA4g'],
    run: closeBatches,
  });
  addCommand<OneFlags>(group, invocation, {
    usage: 'delete <batch...>',
    aliases: ['rm', 'remove'],
    summary: 'delete what is known of batches that have ended; their tasks stay',
    options: [homeOption()],
    examples: ['batch delete -q default batch-3q2K0sW8Zx1uV7yJt5mA4g'],
    run: deleteBatches,
  });
}

async function listBatches(context: CommandContext<ListFlags>): Promise<void> {
  const { queue, page, size, json } = context.options;
  const batches = await (await context.inspector()).listBatches({ queue, page, size });
  if (json) return context.json(batches.map(batchAsJson));
  if (batches.length === 0) return context.note(queue === undefined ? 'No batches' : `No batches in queue "${queue}"`);
  context.table(
    [
      { title: 'ID', cell: ({ id }) => id },
      { title: 'Queue', cell: (batch) => batch.queue },
      { title: 'Name', cell: ({ name }) => name, shrinks: true },
      { title: 'State', cell: ({ state }) => state },
      { title: 'Total', cell: ({ total }) => total },
      { title: 'Pending', cell: ({ pending }) => pending },
      { title: 'Succeeded', cell: ({ succeeded }) => succeeded },
      { title: 'Failed', cell: ({ failed }) => failed },
      { title: 'Opened', cell: ({ openedAt }) => formatMoment(openedAt, context.now), shrinks: true },
    ],
    batches,
  );
}

async function inspectBatches(context: CommandContext<OneFlags>): Promise<void> {
  const { queue, json } = context.options;
  const inspector = await context.inspector();
  const found: BatchInfo[] = [];
  await context.forEach(context.args, async (id) => {
    const batch = await inspector.getBatch(queue, id);
    if (!batch) throw new BatchNotFoundError(queue, id);
    found.push(batch);
    if (json) return;
    if (found.length > 1) context.print('');
    context.fields([
      ['ID', batch.id],
      ['Queue', batch.queue],
      ['Name', batch.name],
      ['State', batch.state],
      ['Total', batch.total],
      ['Pending', batch.pending],
      ['Succeeded', batch.succeeded],
      ['Failed', batch.failed],
      ['Opened', formatMoment(batch.openedAt, context.now)],
      ['Ended', formatMoment(batch.endedAt, context.now) || 'not yet'],
    ]);
  });
  if (json) context.json(found.map(batchAsJson));
}

async function closeBatches(context: CommandContext<OneFlags>): Promise<void> {
  const inspector = await context.inspector();
  await context.forEach(context.args, async (id) => {
    await inspector.closeBatch(context.options.queue, id);
    context.print(plain(`Batch "${id}" is closed`));
  });
}

async function deleteBatches(context: CommandContext<OneFlags>): Promise<void> {
  const inspector = await context.inspector();
  await context.forEach(context.args, async (id) => {
    await inspector.deleteBatch(context.options.queue, id);
    context.print(plain(`Batch "${id}" is deleted`));
  });
}

const batchAsJson = (batch: BatchInfo): object => ({ ...batch, endedAt: batch.endedAt ?? null });
