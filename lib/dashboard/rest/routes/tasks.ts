import { TaskNotFoundError } from '../../../errors.js';
import type { Dashboard } from '../../dashboard.js';
import type { ApiRequest, Route } from '../route.js';
import { ref } from '../schema.js';
import { showTask } from '../shapes/task.js';

async function show(dashboard: Dashboard, { params, permissions }: ApiRequest) {
  await dashboard.requireQueue(params.queue!);
  const task = await dashboard.inspector.getTaskInfo(params.queue!, params.id!);
  if (!task) throw new TaskNotFoundError(params.queue!, params.id!);
  return showTask(dashboard, task, permissions, task.state === 'active' ? await dashboard.knownServers() : []);
}

export const taskRoutes: readonly Route[] = [
  {
    method: 'GET',
    path: 'queues/{queue}/tasks/{id}',
    summary: 'A task with all its details',
    reply: ref('Task'),
    handle: show,
  },
];
