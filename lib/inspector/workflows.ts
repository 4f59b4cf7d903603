import { mapConcurrent } from '../async.js';
import type { Broker } from '../broker/broker.js';
import { type RunState, type RunSummary, type StepState, type StoredStep, taskIdOfStep } from '../broker/workflows.js';
import type { FailurePolicy } from '../broker/links.js';
import { InvalidOptionError } from '../errors.js';
import type { Relay } from '../links/relay.js';
import { describe, rejectUnknownKeys, requireNonBlank, requireObject } from '../validation.js';
import { cancelRun, deleteRun, retryRun } from '../workflows/run-actions.js';
import { requireQueueName } from './known-queue.js';
import { lateSteps } from './late-steps.js';
import { linkedQueues } from './linked-queues.js';
import { type PageOptions, toRange } from './list-options.js';

type WorkflowsBroker = Pick<Broker, 'workflows' | 'links' | 'inspection' | 'administration' | 'cancellation' | 'clock'>;
type Carrier = Pick<Relay, 'carry'>;

/** Queues that are asked at the same time. */
const MAX_CALLS_AT_ONCE = 8;

export interface WorkflowListOptions extends PageOptions {
  /** Only runs that this queue keeps. Default: those of all queues. */
  readonly queue?: string;
}

/** A run of a workflow. */
export interface WorkflowInfo {
  /** The queue that keeps it. */
  readonly queue: string;
  /** `<name of the workflow>/<id given to start>` */
  readonly id: string;
  /** The name of the workflow. */
  readonly name: string;
  readonly state: RunState;
  readonly startedAt: Date;
  readonly endedAt: Date | undefined;
  /** How many steps it has. */
  readonly steps: number;
  /** Steps that have not ended. */
  readonly open: number;
  readonly failed: number;
  /** Why it was cancelled. */
  readonly reason: string | undefined;
}

/** A step of a run. */
export interface WorkflowStepInfo {
  readonly name: string;
  readonly type: string;
  /** The queue and the id of its task, which exists while the step is ready or failed. */
  readonly queue: string;
  readonly taskId: string;
  /** The steps it waits for. */
  readonly after: readonly string[];
  readonly onFailure: FailurePolicy;
  readonly optional: boolean;
  readonly state: StepState;
  /** Why it failed or was cancelled. */
  readonly error: string | undefined;
  /** When all it waits for had ended. */
  readonly readyAt: Date | undefined;
  readonly endedAt: Date | undefined;
  /**
   * The step is late: since then its task could have started, for a minute or longer, and no server has
   * taken it. `undefined` for all others, and after 100 steps of a run that may be late.
   */
  readonly lateSince: Date | undefined;
}

/** A run with its graph. */
export interface WorkflowDetails extends WorkflowInfo {
  /** In the order in which they were added. */
  readonly graph: readonly WorkflowStepInfo[];
}

/** Newest first. @throws InvalidOptionError */
export async function listWorkflows(
  broker: WorkflowsBroker,
  options: WorkflowListOptions = {},
): Promise<WorkflowInfo[]> {
  requireObject(options, 'the options of a list', InvalidOptionError);
  rejectUnknownKeys(options, ['queue', 'size', 'page'], 'list option', InvalidOptionError);
  const { queue, size: wanted, page } = options;
  const { offset, size } = toRange({ size: wanted, page });
  const { workflows } = broker;
  if (queue !== undefined) return (await workflows.runs(requireQueueName(queue), { offset, size })).map(viewRun);
  const queues = await linkedQueues(broker);
  const range = { offset: 0, size: offset + size };
  const lists = await mapConcurrent(queues, MAX_CALLS_AT_ONCE, (one) => workflows.runs(one, range));
  const all = lists.flat().sort((a, b) => b.startedAt - a.startedAt);
  return all.slice(offset, offset + size).map(viewRun);
}

/** @throws InvalidOptionError */
export async function getWorkflow(
  broker: WorkflowsBroker,
  queue: string,
  id: string,
): Promise<WorkflowDetails | undefined> {
  const run = await broker.workflows.run(requireQueueName(queue), checkedId(id));
  if (!run) return undefined;
  const late = await lateSteps(broker, run);
  return { ...viewRun(run), graph: run.graph.map((step) => viewStep(run.id, step, late.get(step.name))) };
}

/** @throws InvalidOptionError; WorkflowNotFoundError */
export async function cancelWorkflow(
  broker: WorkflowsBroker,
  relay: Carrier,
  queue: string,
  id: string,
  reason?: string,
): Promise<boolean> {
  if (reason !== undefined && typeof reason !== 'string') {
    throw new InvalidOptionError(`the reason to cancel a run must be a string, not ${describe(reason)}`);
  }
  return cancelRun({ broker, relay }, requireQueueName(queue), checkedId(id), reason);
}

/** @throws InvalidOptionError; WorkflowNotFoundError; WorkflowStateError */
export const retryWorkflow = async (
  broker: WorkflowsBroker,
  relay: Carrier,
  queue: string,
  id: string,
): Promise<number> => retryRun({ broker, relay }, requireQueueName(queue), checkedId(id));

/** @throws InvalidOptionError; WorkflowNotFoundError; WorkflowStateError */
export const deleteWorkflow = async (
  broker: WorkflowsBroker,
  relay: Carrier,
  queue: string,
  id: string,
): Promise<void> => deleteRun({ broker, relay }, requireQueueName(queue), checkedId(id));

const checkedId = (id: string): string => requireNonBlank(id, 'id of a run', InvalidOptionError);

const toTime = (milliseconds: number | undefined): Date | undefined =>
  milliseconds === undefined ? undefined : new Date(milliseconds);

function viewRun({
  queue,
  id,
  name,
  state,
  startedAt,
  endedAt,
  steps,
  open,
  failed,
  reason,
}: RunSummary): WorkflowInfo {
  const times = { startedAt: new Date(startedAt), endedAt: toTime(endedAt) };
  return { queue, id, name, state, ...times, steps, open, failed, reason };
}

function viewStep(run: string, step: StoredStep, lateSince: Date | undefined): WorkflowStepInfo {
  const { name, type, queue, after, onFailure, optional, state, error } = step;
  const times = { readyAt: toTime(step.readyAt), endedAt: toTime(step.endedAt), lateSince };
  return { name, type, queue, taskId: taskIdOfStep(run, name), after, onFailure, optional, state, error, ...times };
}
