import type { AuditEntry } from '../api/fleet-types.js';
import { plural } from '../text/format.js';

/** The actions of the audit trail, as the filter lists them. */
export const ACTIONS = [
  'enqueue',
  'clone',
  'edit_payload',
  'reschedule',
  'run',
  'archive',
  'delete',
  'cancel',
  'pause',
  'resume',
  'delete_queue',
  'release_lock',
  'signal',
  'run_schedule',
  'pause_schedule',
  'resume_schedule',
  'cancel_workflow',
  'retry_workflow',
  'delete_workflow',
  'close_batch',
  'delete_batch',
  'retry_row',
  'delete_row',
] as const;

export const OUTCOMES = ['done', 'failed', 'refused', 'started'] as const;

export const spaced = (name: string): string => name.replaceAll('_', ' ');

const QUANTITIES = { all: 'all', batch: 'some', matching: 'matching' } as const;

/** `archive all retry tasks`, `cancel task, then delete`, `signal task “approval”`, `delete queue by force`. */
export function actionText({ action, scope, state, criteria, detail, task_id: task }: AuditEntry): string {
  const many = scope && [QUANTITIES[scope], state, 'tasks', criteria && `with ${criteria}`].filter(Boolean).join(' ');
  const what = [spaced(action), many ?? (task === undefined ? '' : 'task')].filter(Boolean).join(' ');
  if (detail === 'force') return `${what} by force`;
  if (action === 'signal' && detail !== undefined) return `${what} “${detail}”`;
  return detail === undefined ? what : `${what}, then ${detail}`;
}

/** `done, 12 tasks`, `no result`. */
export function resultText({ outcome, count, failed }: AuditEntry): string {
  const done = count === undefined ? '' : `, ${plural(count, 'task')}`;
  const not = failed ? `, not ${plural(failed, 'task')}` : '';
  return `${outcome === 'started' ? 'no result' : outcome}${done}${not}`;
}
