import type { Command } from 'commander';
import type { MovableState } from '../../inspector/bulk.js';
import type { MoveAction } from '../../broker/inspection.js';
import { STATES_BY_ACTION } from '../../task/actions.js';
import type { AsynqInspector } from '../../inspector/inspector.js';
import type { CommandContext } from '../tree/command-context.js';
import { confirm } from '../tree/confirm.js';
import { requireGroup } from '../tree/known-names.js';
import { withProgress } from '../output/progress.js';
import { addCommand, type Invocation } from '../tree/tree.js';
import { groupOption, queueOption, stateOption, yesOption } from '../tree/values.js';
import { countTasks } from '../output/words.js';

interface AllFlags {
  readonly queue: string;
  readonly state: MovableState;
  readonly group?: string;
  readonly yes?: boolean;
}

interface AllSpec {
  readonly action: MoveAction;
  readonly summary: string;
  readonly done: string;
}

const SPECS: readonly AllSpec[] = [
  {
    action: 'archive',
    summary: 'archive all tasks of a state',
    done: 'archived',
  },
  {
    action: 'delete',
    summary: 'delete all tasks of a state; asks first',
    done: 'deleted',
  },
  {
    action: 'run',
    summary: 'run all tasks of a state now',
    done: 'pending now',
  },
];

/** The inspector acts on a few hundred tasks at a time: so a progress bar shows, and Ctrl-C stops between two batches. */
export function addTaskBulk(group: Command, invocation: Invocation): void {
  for (const spec of SPECS) {
    const { action, summary } = spec;
    addCommand<AllFlags>(group, invocation, {
      usage: `${action}all`,
      summary,
      options: [
        queueOption(),
        stateOption(STATES_BY_ACTION[action]),
        groupOption(),
        ...(action === 'delete' ? [yesOption()] : []),
      ],
      examples: [`task ${action}all -q default -s retry`, `task ${action}all -q default -s aggregating -g digest`],
      run: (context) => moveAll(context, spec),
    });
  }
}

async function moveAll(context: CommandContext<AllFlags>, { action, done }: AllSpec): Promise<void> {
  await requireGroup(context);
  const { queue, state, group } = context.options;
  const which = `all ${state} tasks of ${group === undefined ? '' : `group "${group}" in `}queue "${queue}"`;
  const inspector = await context.inspector();
  if (action === 'delete' && !(await confirm(context, `delete ${which}`))) return;
  const act = methodOf(inspector, action);
  const signal = context.terminal.interruption();
  const { moved, skipped } = await withProgress(context.terminal, `${action} ${which}`, (onProgress) =>
    act(queue, state, { group, onProgress, signal }),
  );
  context.print(`${countTasks(moved)} ${moved === 1 ? 'is' : 'are'} ${done}`);
  if (skipped > 0) context.note(`${countTasks(skipped)} had left the state, or cannot be read`);
}

function methodOf(inspector: AsynqInspector, action: MoveAction): AsynqInspector['runAllTasks'] {
  switch (action) {
    case 'run':
      return inspector.runAllTasks.bind(inspector);
    case 'archive':
      return inspector.archiveAllTasks.bind(inspector);
    case 'delete':
      return inspector.deleteAllTasks.bind(inspector);
  }
}
