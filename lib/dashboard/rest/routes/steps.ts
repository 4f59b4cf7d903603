import { TaskNotFoundError } from '../../../errors.js';
import { MAX_LISTED_BYTES } from '../../payload/presenter.js';
import type { Dashboard } from '../../dashboard.js';
import { PAGE_PARAMETERS, pageOf, sizeOf } from '../query.js';
import type { ApiRequest, Route } from '../route.js';
import { anything, choice, ref, text } from '../schema.js';
import { showSteps } from '../shapes/steps.js';

async function list(dashboard: Dashboard, { params, query, permissions }: ApiRequest) {
  const [queue, id] = [params.queue!, params.id!];
  await dashboard.requireQueue(queue);
  const { inspector } = dashboard;
  const page = { page: pageOf(query), size: sizeOf(query), maxResultSize: MAX_LISTED_BYTES };
  const [task, found] = await Promise.all([inspector.getTaskInfo(queue, id), inspector.steps(queue, id, page)]);
  if (!task) throw new TaskNotFoundError(queue, id);
  return showSteps(dashboard, task, found, permissions);
}

async function signal(dashboard: Dashboard, { params, body }: ApiRequest): Promise<void> {
  const [queue, id] = [params.queue!, params.id!];
  const { name, payload } = body as { name: string; payload?: unknown };
  await dashboard.requireQueue(queue);
  await dashboard.client.signal({ queue, id }, { name }, payload as undefined);
}

export const stepRoutes: readonly Route[] = [
  {
    method: 'GET',
    path: 'queues/{queue}/tasks/{id}/steps',
    summary: 'The steps of the handler of a task, and the signals it has got',
    query: PAGE_PARAMETERS,
    reply: ref('HandlerSteps'),
    handle: list,
  },
  {
    method: 'POST',
    path: 'queues/{queue}/tasks/{id}:signal',
    summary: 'Send a signal to the handler of a task, which waits for it or will do so',
    body: choice({ name: text('of the signal'), payload: anything('JSON; default: none') }, ['name']),
    handle: signal,
  },
];
