import { type Command, Option } from 'commander';
import type { MovableState } from '../../inspector/bulk.js';
import type { MoveAction } from '../../broker/inspection.js';
import { STATES_BY_ACTION } from '../../task/actions.js';
import type { AsynqInspector } from '../../inspector/inspector.js';
import type { CommandContext } from '../tree/command-context.js';
import { confirm } from '../tree/confirm.js';
import { requireGroup } from '../tree/known-names.js';
import { withProgress } from '../output/progress.js';
import { type CriteriaFlags, criteriaOf, criteriaOptions, criteriaText } from '../tree/criteria.js';
import { addCommand, type Invocation } from '../tree/tree.js';
import {
  type CancelFlagValues,
  cancelOptions,
  groupOption,
  keyOption,
  queueOption,
  stateOption,
  yesOption,
} from '../tree/values.js';
import { countTasks } from '../output/words.js';

interface AllFlags extends CriteriaFlags {
  readonly queue: string;
  readonly state: MovableState;
  readonly group?: string;
  readonly key?: string;
  readonly yes?: boolean;
  readonly dryRun?: boolean;
}

interface CancelFlags extends CriteriaFlags, CancelFlagValues {
  readonly queue: string;
  readonly yes?: boolean;
  readonly dryRun?: boolean;
}

interface AllSpec {
  readonly action: MoveAction;
  readonly summary: string;
  readonly done: string;
}

const SPECS: readonly AllSpec[] = [
  {
    action: 'archive',
    summary: 'archive all tasks of a state, or those that match',
    done: 'archived',
  },
  {
    action: 'delete',
    summary: 'delete all tasks of a state, or those that match; asks first',
    done: 'deleted',
  },
  {
    action: 'run',
    summary: 'run all tasks of a state now, or those that match',
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
        keyOption(),
        ...criteriaOptions('only'),
        dryRunOption(),
        ...(action === 'delete' ? [yesOption()] : []),
      ],
      examples: [
        `task ${action}all -q default -s retry`,
        `task ${action}all -q default -s aggregating -g digest`,
        `task ${action}all -q default -s retry --type email: --error ECONNREFUSED --older-than 2h --dry-run`,
      ],
      run: (context) => moveAll(context, spec),
    });
  }
  addCommand<CancelFlags>(group, invocation, {
    usage: 'cancelall',
    summary: 'cancel all tasks of a queue that are running, or those that match',
    details:
      'Asks the servers that run them, without a reply. A Go server ignores reason and outcome: it retries the task.',
    options: [queueOption(), ...cancelOptions(), ...criteriaOptions('only'), dryRunOption(), yesOption()],
    examples: ['task cancelall -q default --type import: --older-than 1h --outcome archive'],
    run: cancelAll,
  });
}

const dryRunOption = (): Option => new Option('--dry-run', 'only count them');

async function cancelAll(context: CommandContext<CancelFlags>): Promise<void> {
  const { queue, reason, outcome, dryRun } = context.options;
  const which = `all active tasks${criteriaText(context.options)} of queue "${queue}"`;
  const inspector = await context.inspector();
  const criteria = criteriaOf(context.options);
  if (dryRun) return printCount(context, await inspector.countTasks(queue, 'active', criteria), 'would be cancelled');
  if (!(await confirm(context, `cancel ${which}`))) return;
  const signal = context.terminal.interruption();
  const asked = await withProgress(context.terminal, `cancel ${which}`, (onProgress) =>
    inspector.cancelAllTasks(queue, { ...criteria, reason, outcome, onProgress, signal }),
  );
  context.print(`Asked to cancel ${countTasks(asked)}`);
}

const printCount = (context: CommandContext<object>, count: number, what: string): void =>
  context.print(`${countTasks(count)} ${what}`);

async function moveAll(context: CommandContext<AllFlags>, { action, done }: AllSpec): Promise<void> {
  await requireGroup(context);
  const { queue, state, group, key: fairnessKey, dryRun } = context.options;
  const which = `all ${state} tasks${criteriaText(context.options)} of ${group === undefined ? '' : `group "${group}" in `}${fairnessKey === undefined ? '' : `key "${fairnessKey}" in `}queue "${queue}"`;
  const inspector = await context.inspector();
  const criteria = criteriaOf(context.options);
  if (dryRun) {
    const count = await inspector.countTasks(queue, state, { ...criteria, group, fairnessKey });
    return printCount(context, count, `would be ${done}`);
  }
  if (action === 'delete' && !(await confirm(context, `delete ${which}`))) return;
  const act = methodOf(inspector, action);
  const signal = context.terminal.interruption();
  const { moved, skipped } = await withProgress(context.terminal, `${action} ${which}`, (onProgress) =>
    act(queue, state, { ...criteria, group, fairnessKey, onProgress, signal }),
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
