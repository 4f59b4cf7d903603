import { isAllowed } from '../../../task/actions.js';
import type { BulkAction } from '../api/endpoints.js';
import type { Role, State } from '../api/types.js';
import { plural } from '../text/format.js';

const BULK_ACTIONS: readonly BulkAction[] = ['run', 'cancel', 'archive', 'delete'];

/** The actions that many tasks in this state allow at once. */
export const bulkActionsFor = (state: State): readonly BulkAction[] =>
  BULK_ACTIONS.filter((action) => isAllowed(action, state));

export const REQUIRED_ROLES: Readonly<Record<BulkAction, Role>> = {
  run: 'act',
  archive: 'act',
  cancel: 'act',
  delete: 'destroy',
};

export const LABELS: Readonly<Record<BulkAction, string>> = {
  run: 'Run now',
  archive: 'Archive',
  delete: 'Delete',
  cancel: 'Cancel',
};

const DONE: Readonly<Record<BulkAction, string>> = {
  run: 'made pending',
  archive: 'archived',
  delete: 'deleted',
  cancel: 'asked to stop',
};

/** What the dialog says before an action on all tasks of a state. */
export const WARNINGS: Readonly<Record<BulkAction, string>> = {
  run: 'They become pending now, whatever time they were scheduled for.',
  archive:
    'They are not processed until somebody runs them. The archive is limited: it deletes its oldest tasks first.',
  delete: 'This cannot be undone.',
  cancel: 'Each handler receives a signal to stop. Then its task is retried, as its options say.',
};

/**
 * The reply to a batch lists the ids that succeeded and those that failed: `{ archived_ids,
 * error_ids }`.
 */
export function batchResult(
  action: BulkAction,
  reply: Readonly<Record<string, readonly string[] | null>>,
): [string, boolean] {
  const names = Object.keys(reply).filter((name) => Array.isArray(reply[name]));
  const failed = names.filter((name) => /^(error|failed)_ids$/.test(name)).flatMap((name) => reply[name] ?? []);
  const done = names.filter((name) => !/^(error|failed)_ids$/.test(name)).flatMap((name) => reply[name] ?? []);
  const first = `${plural(done.length, 'task')} ${DONE[action]}`;
  if (failed.length === 0) return [`${first}.`, false];
  const shown = failed.slice(0, 3).join(', ') + (failed.length > 3 ? ', …' : '');
  return [`${first}, ${failed.length} not: ${shown}. They have changed their state meanwhile or are gone.`, true];
}

/** What an action on the tasks that match has done. */
export function matchResult(
  action: BulkAction,
  { done, skipped, ended }: { done: number; skipped: number; ended: boolean },
): [string, boolean] {
  const not = skipped === 0 ? '' : ` ${plural(skipped, 'task')} not: they have changed their state meanwhile.`;
  const rest = ended ? '' : ' Stopped before the end of the list.';
  return [`${plural(done, 'task')} ${DONE[action]}.${not}${rest}`, skipped > 0];
}

/** The reply to an action on all tasks: one number, or nothing. */
export function allResult(action: BulkAction, reply: Readonly<Record<string, number>> | undefined): string {
  const done = Object.values(reply ?? {}).find((value) => typeof value === 'number');
  return done === undefined ? `All tasks ${DONE[action]}.` : `${plural(done, 'task')} ${DONE[action]}.`;
}
