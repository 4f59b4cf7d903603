import type { Command } from 'commander';
import type { EnqueueEvent, PeriodicEntry } from '../../inspector/periodic-entries.js';
import type { Call } from '../command-context.js';
import { bytesAsJson } from '../json.js';
import { describeBytes } from '../text.js';
import { addCommand, addGroup, type Frame } from '../tree.js';
import { jsonOption, pageOptions } from '../values.js';
import { formatMoment } from '../when.js';

interface HistoryFlags {
  readonly page?: number;
  readonly size: number;
  readonly json?: boolean;
}

export function addCronCommands(root: Command, frame: Frame): void {
  const group = addGroup(root, 'cron', 'look at periodic tasks');
  addCommand<{ readonly json?: boolean }>(group, frame, {
    usage: 'list',
    aliases: ['ls'],
    summary: 'list the periodic tasks of all processes, each once',
    options: [jsonOption()],
    examples: ['cron list'],
    run: listEntries,
  });
  addCommand<HistoryFlags>(group, frame, {
    usage: 'history <entry...>',
    summary: 'show the last tasks that entries have enqueued, newest first',
    options: [...pageOptions(), jsonOption()],
    examples: ['cron history digest:42', 'cron history digest:42 --page 2 --size 50'],
    run: showHistory,
  });
}

async function listEntries(call: Call<{ readonly json?: boolean }>): Promise<void> {
  const entries = (await (await call.inspector()).schedulerEntries()).sort(byNextTime);
  if (call.options.json) return call.json(entries.map(entryAsJson));
  if (entries.length === 0) return call.note('No process has a periodic task');
  call.table(
    [
      { title: 'EntryID', cell: ({ id }) => id },
      { title: 'Spec', cell: ({ spec }) => spec },
      { title: 'Type', cell: ({ taskType }) => taskType },
      { title: 'Payload', cell: ({ taskPayload }) => describeBytes(taskPayload), shrinks: true },
      { title: 'Options', cell: ({ options }) => options.join(' '), shrinks: true },
      { title: 'Next', cell: ({ nextEnqueueAt }) => formatMoment(nextEnqueueAt, call.now) || 'never' },
      { title: 'Prev', cell: ({ prevEnqueueAt }) => formatMoment(prevEnqueueAt, call.now) || 'not yet' },
      { title: 'Replicas', cell: ({ replicas }) => replicas },
    ],
    entries,
  );
}

/** Those that are never due come last. */
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
  };
}

async function showHistory(call: Call<HistoryFlags>): Promise<void> {
  const { page, size, json } = call.options;
  const inspector = await call.inspector();
  const all: (EnqueueEvent & { entryId: string })[] = [];
  let shown = 0;
  await call.forEach(call.args, async (entryId) => {
    const events = await inspector.schedulerEnqueueEvents(entryId, { size, page });
    all.push(...events.map((event) => ({ entryId, ...event })));
    if (json) return;
    if (shown++) call.print('');
    call.heading(`Entry ${entryId}`);
    if (events.length === 0) return call.note(`Nothing is known of entry "${entryId}"`);
    call.table(
      [
        { title: 'TaskID', cell: ({ taskId }: EnqueueEvent) => taskId },
        { title: 'Enqueued', cell: ({ enqueuedAt }: EnqueueEvent) => formatMoment(enqueuedAt, call.now) },
      ],
      events,
    );
  });
  if (json) call.json(all);
}
