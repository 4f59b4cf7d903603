import { TaskNotFoundError } from '../../../errors.js';
import type { Dashboard } from '../../dashboard.js';
import type { ApiRequest, Route } from '../route.js';
import { ref } from '../schema.js';
import { showExplanation } from '../shapes/explanation.js';
import { toSubject } from '../shapes/subject.js';
import { showTask } from '../shapes/task.js';

async function show(dashboard: Dashboard, { params, permissions }: ApiRequest) {
  await dashboard.requireQueue(params.queue!);
  const task = await dashboard.inspector.getTaskInfo(params.queue!, params.id!);
  if (!task) throw new TaskNotFoundError(params.queue!, params.id!);
  return showTask(dashboard, task, permissions, task.state === 'active' ? await dashboard.knownServers() : []);
}

/** A task that ends meanwhile is not found, as above. */
async function explain(dashboard: Dashboard, { params, permissions }: ApiRequest) {
  const { queue, id } = { queue: params.queue!, id: params.id! };
  await dashboard.requireQueue(queue);
  const task = await dashboard.inspector.getTaskInfo(queue, id);
  const explanation = task && (await dashboard.inspector.explain({ queue, id }));
  if (!explanation || explanation.state === undefined) throw new TaskNotFoundError(queue, id);
  const { isHidden } = dashboard.presenter.present(toSubject(task)).payload;
  return showExplanation(explanation, { dashboard, permissions, type: task.type, queue, isHidden });
}

export const taskRoutes: readonly Route[] = [
  {
    method: 'GET',
    path: 'queues/{queue}/tasks/{id}',
    summary: 'A task with all its details',
    reply: ref('Task'),
    handle: show,
  },
  {
    method: 'GET',
    path: 'queues/{queue}/tasks/{id}/explanation',
    summary: 'Why a task does not run',
    reply: ref('Explanation'),
    handle: explain,
  },
];
