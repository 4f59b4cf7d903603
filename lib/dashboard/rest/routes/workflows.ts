import { WorkflowNotFoundError } from '../../../errors.js';
import { RUN_STATES, STEP_STATES } from '../../../broker/workflows.js';
import { FAILURE_POLICIES } from '../../../task/links.js';
import type { WorkflowDetails, WorkflowInfo, WorkflowStepInfo } from '../../../inspector/workflows.js';
import type { Dashboard } from '../../dashboard.js';
import { runElsewhere } from '../../dashboard.messages.js';
import { cut } from '../../payload/text.js';
import { type DashboardRole, mayDo, type Permissions } from '../../permissions.js';
import { ApiError } from '../api-error.js';
import { given, PAGE_PARAMETERS, pageOf, sizeOf } from '../query.js';
import type { ApiRequest, Route } from '../route.js';
import { choice, count, flag, listOf, oneOf, orNull, ref, shape, text, time } from '../schema.js';
import { timeOrNull } from '../shapes/times.js';
import { QUEUE_PARAMETER } from './batches.js';

const MAX_ERROR_LENGTH = 2_000;
const MAX_REASON_LENGTH = 1_000;

const RUN = {
  id: text('`<name of the workflow>/<id given to start>`'),
  queue: text('which keeps the run; its tasks may be in others'),
  name: text('of the workflow'),
  state: oneOf(RUN_STATES),
  started_at: time(),
  ended_at: orNull(time()),
  steps: count(),
  open: count('steps that have not ended'),
  failed: count(),
  reason: orNull(text('why it was cancelled')),
};

export const workflowSchemas = {
  WorkflowRun: shape(RUN),
  WorkflowRunWithGraph: shape({ ...RUN, graph: listOf(ref('WorkflowStep')) }),
  WorkflowStep: shape({
    name: text(),
    type: orNull(text('null: the queue of the task may not be seen')),
    queue: orNull(text('null: the queue of the task may not be seen')),
    task_id: text(),
    after: listOf(text('name of a step it waits for')),
    on_failure: oneOf(FAILURE_POLICIES),
    optional: flag(),
    state: oneOf(STEP_STATES),
    error: orNull(text('why it failed or was cancelled, cut')),
    ready_at: orNull(time('when all it waits for had ended')),
    ended_at: orNull(time()),
    late_since: orNull(time('its task could have started then, and no server has taken it for a minute or longer')),
  }),
};

const showRun = ({ id, queue, name, state, startedAt, endedAt, steps, open, failed, reason }: WorkflowInfo) => ({
  id,
  queue,
  name,
  state,
  started_at: timeOrNull(startedAt),
  ended_at: timeOrNull(endedAt),
  steps,
  open,
  failed,
  reason: reason ?? null,
});

function showStep({ presenter }: Dashboard, step: WorkflowStepInfo, permissions: Permissions) {
  const { name, type, queue, taskId, after, onFailure, optional, state, error, readyAt, endedAt, lateSince } = step;
  const seen = permissions.maySee(queue);
  const shown = seen && error !== undefined ? presenter.presentError({ type, queue, error }) : undefined;
  return {
    name,
    type: seen ? type : null,
    queue: seen ? queue : null,
    task_id: taskId,
    after,
    on_failure: onFailure,
    optional,
    state,
    error: shown === undefined ? null : cut(shown, MAX_ERROR_LENGTH).text,
    ready_at: timeOrNull(readyAt),
    ended_at: timeOrNull(endedAt),
    late_since: timeOrNull(lateSince),
  };
}

/** A page holds fewer than asked for where the sender may not see all queues. */
async function list({ inspector }: Dashboard, { query, permissions }: ApiRequest) {
  const page = { queue: given(query, 'queue'), size: sizeOf(query), page: pageOf(query) };
  const runs = await inspector.listWorkflows(page);
  return { runs: runs.filter(({ queue }) => permissions.maySee(queue)).map(showRun) };
}

async function find({ inspector }: Dashboard, { params }: ApiRequest): Promise<WorkflowDetails> {
  const run = await inspector.getWorkflow(params.queue!, params.run!);
  if (!run) throw new WorkflowNotFoundError(params.queue!, params.run!);
  return run;
}

async function show(dashboard: Dashboard, request: ApiRequest) {
  const run = await find(dashboard, request);
  return { ...showRun(run), graph: run.graph.map((step) => showStep(dashboard, step, request.permissions)) };
}

/** What is done to a run is done to its tasks. @throws WorkflowNotFoundError, ApiError */
async function requireAll(dashboard: Dashboard, request: ApiRequest, needed: DashboardRole): Promise<void> {
  const { graph } = await find(dashboard, request);
  const mayIn = (queue: string): boolean => {
    const role = request.permissions.roleIn(queue);
    return role !== undefined && mayDo(role, needed);
  };
  if (!graph.every(({ queue }) => mayIn(queue))) throw new ApiError('FORBIDDEN', runElsewhere(needed));
}

async function cancel(dashboard: Dashboard, request: ApiRequest): Promise<void> {
  await requireAll(dashboard, request, 'act');
  const { reason } = (request.body ?? {}) as { reason?: string };
  const shortened = reason === undefined || reason === '' ? undefined : cut(reason, MAX_REASON_LENGTH).text;
  await dashboard.inspector.cancelWorkflow(request.params.queue!, request.params.run!, shortened);
}

async function retry(dashboard: Dashboard, request: ApiRequest) {
  await requireAll(dashboard, request, 'act');
  return { retried: await dashboard.inspector.retryWorkflow(request.params.queue!, request.params.run!) };
}

async function remove(dashboard: Dashboard, request: ApiRequest): Promise<void> {
  await requireAll(dashboard, request, 'destroy');
  await dashboard.inspector.deleteWorkflow(request.params.queue!, request.params.run!);
}

export const workflowRoutes: readonly Route[] = [
  {
    method: 'GET',
    path: 'workflows',
    summary: 'Runs of workflows, newest first',
    scope: 'filtered',
    query: [QUEUE_PARAMETER, ...PAGE_PARAMETERS],
    reply: shape({ runs: listOf(ref('WorkflowRun')) }),
    handle: list,
  },
  {
    method: 'GET',
    path: 'queues/{queue}/workflows/{run}',
    summary: 'A run with its graph',
    reply: ref('WorkflowRunWithGraph'),
    handle: show,
  },
  {
    method: 'POST',
    path: 'queues/{queue}/workflows/{run}:cancel',
    summary: 'Cancel a run: what waits is cancelled, and so are tasks under way',
    body: choice({ reason: text('shown with the run and its steps') }),
    bodyOptional: true,
    handle: cancel,
  },
  {
    method: 'POST',
    path: 'queues/{queue}/workflows/{run}:retry',
    summary: 'Run the failed steps of a run again, which revives what was cancelled for them',
    reply: shape({ retried: count('steps') }),
    handle: retry,
  },
  {
    method: 'DELETE',
    path: 'queues/{queue}/workflows/{run}',
    summary: 'Delete a run that has ended, with its results',
    handle: remove,
  },
];
