import type { Command } from 'commander';
import type { MovableState } from '../../inspector/bulk.js';
import type { TaskAction } from '../../broker/inspection.js';
import type { AsynqInspector } from '../../inspector/inspector.js';
import type { Call } from '../call.js';
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
  readonly action: TaskAction;
  readonly summary: string;
  readonly done: string;
  readonly states: readonly MovableState[];
}

const SPECS: readonly AllSpec[] = [
  {
    action: 'archive',
    summary: 'archive all tasks of a state',
    done: 'archived',
    states: ['pending', 'scheduled', 'retry', 'aggregating'],
  },
  {
    action: 'delete',
    summary: 'delete all tasks of a state; asks first',
    done: 'deleted',
    states: ['pending', 'scheduled', 'retry', 'archived', 'completed', 'aggregating'],
  },
  {
    action: 'run',
    summary: 'run all tasks of a state now',
    done: 'pending now',
    states: ['scheduled', 'retry', 'archived', 'aggregating'],
  },
];

/** The operations of the inspector act on some hundred tasks at a time, so that they can be watched and stopped. */
export function addTaskBulk(group: Command, frame: Frame): void {
  for (const spec of SPECS) {
    const { action, states, summary } = spec;
    addCommand<AllFlags>(group, frame, {
      usage: `${action}all`,
      summary,
      options: [queueOption(), stateOption(states), groupOption(), ...(action === 'delete' ? [yesOption()] : [])],
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

function methodOf(inspector: AsynqInspector, action: TaskAction): AsynqInspector['runAllTasks'] {
  switch (action) {
    case 'run':
      return inspector.runAllTasks.bind(inspector);
    case 'archive':
      return inspector.archiveAllTasks.bind(inspector);
    case 'delete':
      return inspector.deleteAllTasks.bind(inspector);
  }
}
