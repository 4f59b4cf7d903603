import { QueueNotFoundError } from '../../errors.js';
import { forbidden } from '../dashboard.messages.js';
import { type DashboardRole, mayDo, type Permissions } from '../permissions.js';
import { ApiError } from './api-error.js';

/**
 * A queue that the sender may not see is reported as missing.
 *
 * @throws QueueNotFoundError, ApiError
 */
export function requireRoleIn(permissions: Permissions, queue: string, needed: DashboardRole): DashboardRole {
  const role = permissions.roleIn(queue);
  if (role === undefined) throw new QueueNotFoundError(queue);
  if (!mayDo(role, needed)) throw new ApiError('FORBIDDEN', forbidden(needed, role));
  return role;
}
