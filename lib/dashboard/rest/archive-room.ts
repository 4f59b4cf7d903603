import { type DashboardRole, mayDo } from '../permissions.js';
import type { Dashboard } from '../dashboard.js';
import { noArchiveRoom } from '../dashboard.messages.js';
import { ApiError } from './api-error.js';

/**
 * How many tasks of a queue the console lets a role without `destroy` bring into its archive. asynq keeps the newest 9,999 and deletes the
 * oldest beyond that, so whoever can fill the archive can delete what is in it. The other half is left for what fails by itself.
 */
export const MAX_ARCHIVED_WITHOUT_DESTROY = 5_000;

/** The limit for an archiving in this role, checked by the script that archives. */
export const archiveLimitOf = (role: DashboardRole): { maxArchived?: number } =>
  mayDo(role, 'destroy') ? {} : { maxArchived: MAX_ARCHIVED_WITHOUT_DESTROY };

/**
 * Before a task is created: it may fail into the archive, and so may all that wait beside it. The count is read apart from the
 * enqueuing; the half that is left over is more than requests on their way at the same time can add.
 *
 * @throws ApiError when the role may not delete, and the queue has too many tasks
 */
export async function requireRoomForOneMore({ broker }: Dashboard, queue: string, role: DashboardRole): Promise<void> {
  if (mayDo(role, 'destroy')) return;
  const { archived, pending, active, scheduled, retry, aggregating } = await broker.inspection.describeQueue(queue);
  requireRoom(queue, role, archived + pending + active + scheduled + retry + aggregating);
}

/** Before the server that runs a task is asked to archive it. @throws ApiError */
export async function requireRoomInArchive({ broker }: Dashboard, queue: string, role: DashboardRole): Promise<void> {
  if (!mayDo(role, 'destroy')) requireRoom(queue, role, (await broker.inspection.describeQueue(queue)).archived);
}

/** The same as a question. */
export async function hasRoomInArchive(dashboard: Dashboard, queue: string, role: DashboardRole): Promise<boolean> {
  if (mayDo(role, 'destroy')) return true;
  return (await dashboard.broker.inspection.describeQueue(queue)).archived < MAX_ARCHIVED_WITHOUT_DESTROY;
}

function requireRoom(queue: string, role: DashboardRole, tasks: number): void {
  if (tasks < MAX_ARCHIVED_WITHOUT_DESTROY) return;
  throw new ApiError('FORBIDDEN', noArchiveRoom(queue, role, tasks, MAX_ARCHIVED_WITHOUT_DESTROY));
}
