import type { Command } from 'commander';
import type { EnqueueEvent, PeriodicEntry } from '../../inspector/periodic-entries.js';
import type { CommandContext } from '../tree/command-context.js';
import { bytesAsJson } from '../output/json.js';
import { describeBytes, plain } from '../output/text.js';
import { addCommand, addGroup, type Invocation } from '../tree/tree.js';
import { jsonOption, pageOptions } from '../tree/values.js';
import { formatMoment } from '../../words/when.js';

interface HistoryFlags {
  readonly page?: number;
  readonly size: number;
  readonly json?: boolean;
}

export function addCronCommands(root: Command, invocation: Invocation): void {
  const group = addGroup(root, 'cron', 'show, pause and resume periodic tasks');
  addCommand<{ readonly json?: boolean }>(group, invocation, {
    usage: 'list',
    aliases: ['ls'],
    summary: 'list the periodic tasks of all processes, each once',
    options: [jsonOption()],
    examples: ['cron list'],
    run: listEntries,
  });
  addCommand<HistoryFlags>(group, invocation, {
    usage: 'history <entry...>',
    summary: 'show the last tasks that entries have enqueued, newest first',
    options: [...pageOptions(), jsonOption()],
    examples: ['cron history digest:42', 'cron history digest:42 --page 2 --size 50'],
    run: showHistory,
  });
  addCommand(group, invocation, {
    usage: 'pause <entry...>',
    summary: 'have all processes skip the planned times of entries (not those of Go schedulers)',
    examples: ['cron pause digest:42'],
    run: pauseEntries,
  });
  addCommand(group, invocation, {
    usage: 'resume <entry...>',
    aliases: ['unpause'],
    summary: 'end the pause of entries; what was skipped is not made up for',
    examples: ['cron resume digest:42'],
    run: resumeEntries,
  });
}

async function listEntries(context: CommandContext<{ readonly json?: boolean }>): Promise<void> {
  const entries = (await (await context.inspector()).schedulerEntries()).sort(byNextTime);
  if (context.options.json) return context.json(entries.map(entryAsJson));
  if (entries.length === 0) return context.note('No process has a periodic task');
  context.table(
    [
      { title: 'EntryID', cell: ({ id }) => id },
      { title: 'Spec', cell: ({ spec }) => spec },
      { title: 'Type', cell: ({ taskType }) => taskType },
      { title: 'Payload', cell: ({ taskPayload }) => describeBytes(taskPayload), shrinks: true },
      { title: 'Options', cell: ({ options }) => options.join(' '), shrinks: true },
      {
        title: 'Next',
        cell: ({ nextEnqueueAt, pausedAt }) =>
          pausedAt ? 'paused' : formatMoment(nextEnqueueAt, context.now) || 'never',
      },
      { title: 'Prev', cell: ({ prevEnqueueAt }) => formatMoment(prevEnqueueAt, context.now) || 'not yet' },
      { title: 'Replicas', cell: ({ replicas }) => replicas },
    ],
    entries,
  );
}

/** Entries that are never due come last. */
function byNextTime(a: PeriodicEntry, b: PeriodicEntry): number {
  const due = ({ nextEnqueueAt }: PeriodicEntry): number => nextEnqueueAt?.getTime() ?? Infinity;
  return due(a) === due(b) ? Number(a.id > b.id) : due(a) - due(b);
}

function entryAsJson({ taskOptions: _, ...entry }: PeriodicEntry): object {
  const { text, encoding } = bytesAsJson(entry.taskPayload);
  return {
    ...entry,
    taskPayload: text,
    taskPayloadEncoding: encoding,
    nextEnqueueAt: entry.nextEnqueueAt ?? null,
    prevEnqueueAt: entry.prevEnqueueAt ?? null,
    pausedAt: entry.pausedAt ?? null,
  };
}

async function showHistory(context: CommandContext<HistoryFlags>): Promise<void> {
  const { page, size, json } = context.options;
  const inspector = await context.inspector();
  const all: (EnqueueEvent & { entryId: string })[] = [];
  let shown = 0;
  await context.forEach(context.args, async (entryId) => {
    const events = await inspector.schedulerEnqueueEvents(entryId, { size, page });
    all.push(...events.map((event) => ({ entryId, ...event })));
    if (json) return;
    if (shown++) context.print('');
    context.heading(`Entry ${entryId}`);
    if (events.length === 0) return context.note(`Nothing is known of entry "${entryId}"`);
    context.table(
      [
        { title: 'TaskID', cell: ({ taskId }: EnqueueEvent) => taskId },
        { title: 'Enqueued', cell: ({ enqueuedAt }: EnqueueEvent) => formatMoment(enqueuedAt, context.now) },
      ],
      events,
    );
  });
  if (json) context.json(all);
}

async function pauseEntries(context: CommandContext): Promise<void> {
  const inspector = await context.inspector();
  await context.forEach(context.args, async (entry) => {
    if (!(await inspector.pauseSchedulerEntry(entry))) return context.fail(`entry "${entry}" is already paused`);
    context.print(plain(`Entry "${entry}" is paused`));
  });
}

async function resumeEntries(context: CommandContext): Promise<void> {
  const inspector = await context.inspector();
  await context.forEach(context.args, async (entry) => {
    if (!(await inspector.resumeSchedulerEntry(entry))) return context.fail(`entry "${entry}" is not paused`);
    context.print(plain(`Entry "${entry}" is resumed`));
  });
}
