import { TaskNotFoundError } from '../../../errors.js';
import type { Dashboard } from '../../dashboard.js';
import type { Subject } from '../../payload/presenter.js';
import { ApiError } from '../api-error.js';
import { type Attachment, nameOf } from '../attachment.js';
import type { ApiRequest, Route } from '../route.js';
import { findEntry, subjectOf } from './entries.js';

/* Downloads, for what is too large to show, or binary. */

type Part = 'payload' | 'result';

/** @throws ApiError */
function refuseHidden({ presenter }: Dashboard, task: Subject, part: Part): void {
  if (!presenter.hidesBytes(task, part)) return;
  throw new ApiError('FORBIDDEN', `the ${part} of "${task.type}" is redacted, so it cannot be downloaded`);
}

const ofTask =
  (part: Part) =>
  async (dashboard: Dashboard, { params }: ApiRequest): Promise<Attachment> => {
    const [queue, id] = [params.queue!, params.id!];
    await dashboard.requireQueue(queue);
    const task = await dashboard.inspector.getTaskInfo(queue, id);
    if (!task) throw new TaskNotFoundError(queue, id);
    refuseHidden(dashboard, task, part);
    const bytes = task[part];
    if (bytes === undefined) throw new ApiError('NOT_FOUND', `task "${id}" has no ${part}`);
    return { bytes, name: nameOf(`${id}-${part}`, bytes) };
  };

async function ofEntry(dashboard: Dashboard, request: ApiRequest): Promise<Attachment> {
  const entry = await findEntry(dashboard, request);
  refuseHidden(dashboard, subjectOf(entry), 'payload');
  return { bytes: entry.taskPayload, name: nameOf(`${entry.taskType}-payload`, entry.taskPayload) };
}

const TASK = 'queues/{queue}/tasks/{id}';
/** Rarely requested twice, and possibly large. */
const download = { method: 'GET', attachment: true, cached: false } as const;

export const downloadRoutes: readonly Route[] = [
  {
    ...download,
    path: `${TASK}/payload`,
    handle: ofTask('payload'),
    summary: 'The payload of a task, byte by byte; not of redacted ones',
  },
  {
    ...download,
    path: `${TASK}/result`,
    handle: ofTask('result'),
    summary: 'The result of a task, byte by byte; not of redacted ones',
  },
  {
    ...download,
    path: 'scheduler_entries/{entry}/payload',
    scope: 'filtered',
    handle: ofEntry,
    summary: 'The payload of a periodic task, byte by byte; not of redacted ones',
  },
];
