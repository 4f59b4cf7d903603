import type { Dashboard } from '../dashboard.js';
import { noArchiveRoom } from '../dashboard.messages.js';
import { type DashboardRole, mayDo } from '../permissions.js';
import { ApiError } from './api-error.js';

/**
 * How many archived tasks a queue may have before a role without `destroy` may not add more: half of what its archive keeps. The
 * oldest beyond that are deleted, so whoever fills the archive deletes tasks. The other half is left for tasks that fail.
 */
const mostOf = ({ broker }: Dashboard, queue: string): number =>
  Math.min(Math.ceil(broker.archives.of(queue).maxTasks / 2), Number.MAX_SAFE_INTEGER);

/** The limit of a role, which the script checks when it archives. */
export const archiveLimitOf = (dashboard: Dashboard, queue: string, role: DashboardRole): { maxArchived?: number } =>
  mayDo(role, 'destroy') ? {} : { maxArchived: mostOf(dashboard, queue) };

/**
 * Checks the queue before a task is created: it may end in the archive, and so may all tasks that
 * wait. The count is not atomic with the enqueue, but concurrent requests cannot fill the other
 * half.
 *
 * @throws ApiError when the role may not delete, and the queue has too many tasks
 */
export async function requireRoomForOneMore(dashboard: Dashboard, queue: string, role: DashboardRole): Promise<void> {
  if (mayDo(role, 'destroy')) return;
  const numbers = await dashboard.broker.inspection.describeQueue(queue);
  const { archived, pending, active, scheduled, retry, aggregating, waiting, held } = numbers;
  const tasks = archived + pending + active + scheduled + retry + aggregating + waiting + held;
  requireRoom(dashboard, queue, role, tasks);
}

/** Checks the archive before a cancellation archives a task. @throws ApiError */
export async function requireRoomInArchive(dashboard: Dashboard, queue: string, role: DashboardRole): Promise<void> {
  if (mayDo(role, 'destroy')) return;
  requireRoom(dashboard, queue, role, (await dashboard.broker.inspection.describeQueue(queue)).archived);
}

/** The same as a boolean. */
export async function hasRoomInArchive(dashboard: Dashboard, queue: string, role: DashboardRole): Promise<boolean> {
  if (mayDo(role, 'destroy')) return true;
  return (await dashboard.broker.inspection.describeQueue(queue)).archived < mostOf(dashboard, queue);
}

function requireRoom(dashboard: Dashboard, queue: string, role: DashboardRole, tasks: number): void {
  const most = mostOf(dashboard, queue);
  if (tasks < most) return;
  throw new ApiError('FORBIDDEN', noArchiveRoom(queue, role, tasks, most));
}
