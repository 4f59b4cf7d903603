import type { Dashboard } from '../dashboard.js';
import { noArchiveRoom } from '../dashboard.messages.js';
import { type DashboardRole, mayDo } from '../permissions.js';
import { ApiError } from './api-error.js';

/**
 * How many archived tasks a queue may have before a role without `destroy` may not add more. asynq
 * keeps the newest 9,999 and deletes the oldest beyond that, so whoever fills the archive deletes
 * tasks. The other half is left for tasks that fail.
 */
export const MAX_ARCHIVED_WITHOUT_DESTROY = 5_000;

/** The limit of a role, which the script checks when it archives. */
export const archiveLimitOf = (role: DashboardRole): { maxArchived?: number } =>
  mayDo(role, 'destroy') ? {} : { maxArchived: MAX_ARCHIVED_WITHOUT_DESTROY };

/**
 * Checks the queue before a task is created: it may end in the archive, and so may all tasks that
 * wait. The count is not atomic with the enqueue, but concurrent requests cannot fill the other
 * half.
 *
 * @throws ApiError when the role may not delete, and the queue has too many tasks
 */
export async function requireRoomForOneMore({ broker }: Dashboard, queue: string, role: DashboardRole): Promise<void> {
  if (mayDo(role, 'destroy')) return;
  const numbers = await broker.inspection.describeQueue(queue);
  const { archived, pending, active, scheduled, retry, aggregating, waiting } = numbers;
  requireRoom(queue, role, archived + pending + active + scheduled + retry + aggregating + waiting);
}

/** Checks the archive before a cancellation archives a task. @throws ApiError */
export async function requireRoomInArchive({ broker }: Dashboard, queue: string, role: DashboardRole): Promise<void> {
  if (!mayDo(role, 'destroy')) requireRoom(queue, role, (await broker.inspection.describeQueue(queue)).archived);
}

/** The same as a boolean. */
export async function hasRoomInArchive(dashboard: Dashboard, queue: string, role: DashboardRole): Promise<boolean> {
  if (mayDo(role, 'destroy')) return true;
  return (await dashboard.broker.inspection.describeQueue(queue)).archived < MAX_ARCHIVED_WITHOUT_DESTROY;
}

function requireRoom(queue: string, role: DashboardRole, tasks: number): void {
  if (tasks < MAX_ARCHIVED_WITHOUT_DESTROY) return;
  throw new ApiError('FORBIDDEN', noArchiveRoom(queue, role, tasks, MAX_ARCHIVED_WITHOUT_DESTROY));
}
