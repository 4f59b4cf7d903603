import { type Command, Option } from 'commander';
import type { TaskOptions } from '../../task/options.js';
import type { CommandContext } from '../tree/command-context.js';
import { taskAsJson } from '../output/json.js';
import { plain } from '../output/text.js';
import { addCommand, type Invocation } from '../tree/tree.js';
import { count, duration, jsonOption, type ProcessFlags, processOptions, time } from '../tree/values.js';

interface EnqueueFlags extends ProcessFlags {
  readonly type_name: string;
  readonly payload: string;
  readonly retry?: number;
  readonly queue?: string;
  readonly id?: string;
  readonly timeout?: number;
  readonly deadline?: Date;
  readonly expires_in?: number;
  readonly on_expiry?: 'archive' | 'drop';
  readonly unique?: number;
  readonly retention?: number;
  readonly group?: string;
  readonly json?: boolean;
}

export function addTaskEnqueue(group: Command, invocation: Invocation): void {
  addCommand<EnqueueFlags>(group, invocation, {
    usage: 'enqueue',
    summary: 'enqueue a task',
    details: 'Durations are written as 90s, 1h30m or 500ms, times in RFC 3339. Defaults are those of the library.',
    options: [
      new Option('-t, --type_name <type>', 'type of the task').makeOptionMandatory(),
      new Option('-l, --payload <text>', 'payload, stored as it is').makeOptionMandatory(),
      new Option('--retry <number>', 'retries after the first attempt (default: 25)').argParser(count),
      new Option('--queue <name>', 'queue (default: default)'),
      new Option('--id <id>', 'id of the task (default: a new UUID)'),
      new Option(
        '--timeout <duration>',
        'time limit of an attempt (default: 30m, unless there is a deadline)',
      ).argParser(duration),
      new Option('--deadline <time>', 'time by which the task must have ended').argParser(time),
      new Option('--expires_in <duration>', 'archive the task if it has not begun by then').argParser(duration),
      new Option('--on_expiry <policy>', 'what becomes of it then').choices(['archive', 'drop']),
      new Option('--unique <duration>', 'refuse an equal task for this time').argParser(duration),
      ...processOptions(),
      new Option('--retention <duration>', 'how long to keep the completed task (default: 0s)').argParser(duration),
      new Option('--group <name>', 'group that collects the task'),
      jsonOption(),
    ],
    examples: [
      `task enqueue -t email:welcome -l '{"userId":42}'`,
      `task enqueue -t report -l '{}' --queue low --process_in 10m --unique 1h --retry 3`,
    ],
    run: enqueue,
  });
}

async function enqueue(context: CommandContext<EnqueueFlags>): Promise<void> {
  const { type_name, payload, json } = context.options;
  const client = await context.client();
  const task = await client.enqueue(type_name, Buffer.from(payload), toTaskOptions(context.options));
  if (json) return context.json(taskAsJson(task));
  context.print(plain(`Enqueued task: id="${task.id}" queue="${task.queue}" state=${task.state}`));
}

const toTaskOptions = (flags: EnqueueFlags): TaskOptions => ({
  maxRetry: flags.retry,
  queue: flags.queue,
  taskId: flags.id,
  timeout: flags.timeout,
  deadline: flags.deadline,
  expiresIn: flags.expires_in,
  onExpiry: flags.on_expiry,
  unique: flags.unique,
  processAt: flags.process_at,
  processIn: flags.process_in,
  retention: flags.retention,
  group: flags.group,
});
