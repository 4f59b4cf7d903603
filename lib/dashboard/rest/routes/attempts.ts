import { TaskNotFoundError } from '../../../errors.js';
import type { Dashboard } from '../../dashboard.js';
import type { ApiRequest, Route } from '../route.js';
import { ref } from '../schema.js';
import { showAttempts } from '../shapes/attempts.js';

async function list(dashboard: Dashboard, { params }: ApiRequest) {
  const [queue, id] = [params.queue!, params.id!];
  await dashboard.requireQueue(queue);
  const { inspector } = dashboard;
  const [task, found] = await Promise.all([inspector.getTaskInfo(queue, id), inspector.attempts(queue, id)]);
  if (!task || !found) throw new TaskNotFoundError(queue, id);
  return showAttempts(dashboard, task, found);
}

export const attemptRoutes: readonly Route[] = [
  {
    method: 'GET',
    path: 'queues/{queue}/tasks/{id}/attempts',
    summary: 'The attempts of a task that have ended, oldest first',
    reply: ref('TaskAttempts'),
    handle: list,
  },
];
