import type { Command } from 'commander';
import type { MovableState } from '../../inspector/bulk.js';
import type { MoveAction } from '../../broker/inspection.js';
import { STATES_BY_ACTION } from '../../task/actions.js';
import type { AsynqInspector } from '../../inspector/inspector.js';
import type { Call } from '../command-context.js';
import { confirm } from '../confirm.js';
import { requireGroup } from '../known-names.js';
import { withProgress } from '../progress.js';
import { addCommand, type Frame } from '../tree.js';
import { groupOption, queueOption, stateOption, yesOption } from '../values.js';
import { countTasks } from '../words.js';

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

/** The operations of the inspector act on some hundred tasks at a time, so that they can be watched and stopped. */
export function addTaskBulk(group: Command, frame: Frame): void {
  for (const spec of SPECS) {
    const { action, summary } = spec;
    addCommand<AllFlags>(group, frame, {
      usage: `${action}all`,
      summary,
      options: [
        queueOption(),
        stateOption(STATES_BY_ACTION[action]),
        groupOption(),
        ...(action === 'delete' ? [yesOption()] : []),
      ],
      examples: [`task ${action}all -q default -s retry`, `task ${action}all -q default -s aggregating -g digest`],
      run: (call) => moveAll(call, spec),
    });
  }
}

async function moveAll(call: Call<AllFlags>, { action, done }: AllSpec): Promise<void> {
  await requireGroup(call);
  const { queue, state, group } = call.options;
  const which = `all ${state} tasks of ${group === undefined ? '' : `group "${group}" in `}queue "${queue}"`;
  const inspector = await call.inspector();
  if (action === 'delete' && !(await confirm(call, `delete ${which}`))) return;
  const act = methodOf(inspector, action);
  const signal = call.terminal.interruption();
  const { moved, skipped } = await withProgress(call.terminal, `${action} ${which}`, (onProgress) =>
    act(queue, state, { group, onProgress, signal }),
  );
  call.print(`${countTasks(moved)} ${moved === 1 ? 'is' : 'are'} ${done}`);
  if (skipped > 0) call.note(`${countTasks(skipped)} had left the state meanwhile, or cannot be read`);
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
