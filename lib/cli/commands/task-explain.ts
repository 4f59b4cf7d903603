import type { Command } from 'commander';
import type { TaskExplanation } from '../../inspector/explain/reasons.js';
import type { CommandContext } from '../tree/command-context.js';
import { plain } from '../output/text.js';
import { addCommand, type Invocation } from '../tree/tree.js';
import { idOption, jsonOption, queueOption } from '../tree/values.js';

interface ExplainFlags {
  readonly queue: string;
  readonly id: string;
  readonly json?: boolean;
}

export function addTaskExplain(group: Command, invocation: Invocation): void {
  addCommand<ExplainFlags>(group, invocation, {
    usage: 'explain',
    summary: 'say why a task does not run',
    details:
      'What holds it now comes first, then what would hold it after that: its time, the pause of its queue, servers and their ' +
      'handlers, limits, tasks it waits for, and what is before it.',
    options: [queueOption(), idOption(), jsonOption()],
    examples: ['task explain -q default -i f1720682-f5a6-4db1-8953-4f48ae541d0f'],
    run: explainTask,
  });
}

async function explainTask(context: CommandContext<ExplainFlags>): Promise<void> {
  const { queue, id, json } = context.options;
  const explanation = await (await context.inspector()).explain({ queue, id });
  if (json) return context.json(explanation);
  context.print(plain(headOf(explanation)));
  for (const { text } of explanation.reasons) context.print(plain(`- ${text}`));
}

function headOf({ queue, id, type, state }: TaskExplanation): string {
  const task = `Task "${id}" of queue "${queue}"`;
  return state === undefined ? `${task}:` : `${task} (${type}) is ${state}:`;
}
