import type { TaskInfo } from '../../../task/info.js';
import type { Subject } from '../../payload/presenter.js';

/** A task as the presenter sees it. */
export const toSubject = ({
  type,
  queue,
  payload,
  headers,
  result,
  lastErr,
}: TaskInfo): Subject & { error: string } => ({
  type,
  queue,
  payload,
  headers,
  result,
  error: lastErr,
});
