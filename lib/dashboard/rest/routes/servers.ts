import type { RunningServer, RunningTask } from '../../../inspector/views.js';
import type { Dashboard } from '../../dashboard.js';
import { cut } from '../../payload/text.js';
import type { Permissions } from '../../permissions.js';
import type { ApiRequest, Route } from '../route.js';
import { count, flag, listOf, mapOf, ref, shape, text, time } from '../schema.js';
import { goTime } from '../shapes/times.js';

export const serverSchemas = {
  Server: shape({
    id: text(),
    host: text(),
    pid: count(),
    status: text(),
    concurrency: count(),
    start_time: time(),
    queue_priorities: mapOf(count()),
    strict_priority_enabled: flag(),
    active_workers: listOf(ref('Worker')),
  }),
  Worker: shape({
    task_id: text(),
    queue: text(),
    task_type: text(),
    task_payload: text(),
    start_time: time(),
    deadline: time(),
  }),
};

async function list(dashboard: Dashboard, { permissions }: ApiRequest) {
  const servers = await dashboard.servers();
  return {
    servers: visibleOf(servers, permissions)
      .toSorted(byPlace)
      .map((server) => showServer(dashboard, server)),
  };
}

/** Leaves out servers without visible queues, and hidden queues of the others. */
function visibleOf(servers: readonly RunningServer[], permissions: Permissions): readonly RunningServer[] {
  if (permissions.mayEverywhere('view')) return servers;
  return servers.flatMap((server) => {
    const queues = Object.entries(server.queues).filter(([queue]) => permissions.maySee(queue));
    const activeWorkers = server.activeWorkers.filter(({ queue }) => permissions.maySee(queue));
    if (queues.length === 0 && activeWorkers.length === 0) return [];
    return [{ ...server, queues: Object.fromEntries(queues), activeWorkers }];
  });
}

const byPlace = (a: RunningServer, b: RunningServer): number =>
  a.host.localeCompare(b.host) || a.pid - b.pid || a.id.localeCompare(b.id);

const showServer = (dashboard: Dashboard, server: RunningServer) => ({
  id: server.id,
  host: server.host,
  pid: server.pid,
  concurrency: server.concurrency,
  queue_priorities: server.queues,
  strict_priority_enabled: server.strictPriority,
  start_time: goTime(server.startedAt),
  status: server.status,
  active_workers: server.activeWorkers.map((worker) => showWorker(dashboard, worker)),
});

function showWorker({ presenter, settings }: Dashboard, worker: RunningTask) {
  const { taskId, taskType, taskPayload, queue } = worker;
  const { payload } = presenter.presentRow({ type: taskType, queue, payload: taskPayload });
  return {
    task_id: taskId,
    queue,
    task_type: taskType,
    task_payload: cut(payload.text, settings.maxPayloadLength).text,
    start_time: goTime(worker.startedAt),
    deadline: goTime(worker.deadline),
  };
}

export const serverRoutes: readonly Route[] = [
  {
    method: 'GET',
    path: 'servers',
    summary: 'Running servers and their workers',
    scope: 'filtered',
    reply: shape({ servers: listOf(ref('Server')) }),
    handle: list,
  },
];
