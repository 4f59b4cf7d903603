import type { LinkedRequest } from '../broker/links.js';
import { taskIdOfStep, type NewRun, type NewStep } from '../broker/workflows.js';
import { ceilSeconds } from '../clock.js';
import { marksOf, refuseMarks } from '../enqueue/linked-task.js';
import { refuseRepeat } from '../enqueue/repeats.js';
import type { Preparer } from '../enqueue/preparer.js';
import type { TaskKind } from '../enqueue/task-kinds.js';
import { InvalidWorkflowError } from '../errors.js';
import type { EnqueueSpan } from '../tracing/tracing.js';
import type { Step } from './graph.js';
import { deadlineOf, retentionOf } from './run-options.js';
import type { RunOptions } from './types.js';

/** All payloads of one run: it is stored by one call, which holds Redis as long as it takes. */
const MAX_RUN_BYTES = 64 * 1024 * 1024;

/** How a run is prepared. */
export interface Preparation {
  /** The id of the run in the store. */
  readonly id: string;
  /** Milliseconds since the epoch. */
  readonly now: number;
  readonly preparer: Preparer;
  readonly span: EnqueueSpan | undefined;
}

/** What is read of a workflow. */
interface Graph {
  readonly name: string;
  readonly steps: readonly Step[];
}

/**
 * Checks and encodes all of a run. Writes nothing.
 *
 * @throws InvalidWorkflowError; InvalidTaskError for a wrong option or payload of a step
 */
export function toNewRun({ name, steps }: Graph, options: RunOptions, preparation: Preparation): NewRun {
  const { id, now } = preparation;
  return {
    id,
    name,
    steps: toNewSteps(steps, preparation),
    retention: retentionOf(options.retention),
    deadline: deadlineOf(options.timeout, now),
  };
}

/** @throws InvalidWorkflowError; InvalidTaskError */
export function toNewSteps(steps: readonly Step[], preparation: Preparation): NewStep[] {
  const prepared = steps.map((step) => toNewStep(step, preparation));
  const bytes = prepared.reduce((sum, { request }) => sum + request.message.payload.length, 0);
  if (bytes <= MAX_RUN_BYTES) return prepared;
  throw new InvalidWorkflowError(
    `the payloads of run "${preparation.id}" have ${bytes} bytes together; the most is ${MAX_RUN_BYTES}. ` +
      'Store large data elsewhere and pass references',
  );
}

function toNewStep({ name, task, payload, after, onFailure, optional, options }: Step, by: Preparation): NewStep {
  const kind = by.preparer.kindOf(task, options);
  const { settings } = kind;
  requireSingle(name, kind);
  refuseMarks(settings.queue, `queue of step "${name}"`, InvalidWorkflowError);
  const delay = Math.max(0, settings.processIn ?? 0);
  // The wait of `processIn` begins when the step is ready.
  const expiresIn = settings.expiresIn && settings.expiresIn + delay;
  const placed = { ...settings, processIn: undefined, expiresIn, taskId: taskIdOfStep(by.id, name) };
  const prepared = by.preparer.prepare({ ...kind, links: marksOf(kind.links), settings: placed }, payload, by.now);
  refuseRepeat(prepared, `step "${name}"`);
  const request: LinkedRequest = prepared.request;
  const { message, processAt, uniqueTtl, madeId, mark } = request;
  const ttl = uniqueTtl === undefined ? undefined : uniqueTtl + ceilSeconds(delay);
  const injected = by.span ? by.span.inject(message) : message;
  const placedRequest = { message: injected, processAt, uniqueTtl: ttl, madeId };
  return { name, request: placedRequest, after, onFailure, optional, delay, mark };
}

/** Defaults of a definition or a client may say what a step cannot have. */
function requireSingle(step: string, { type, settings }: TaskKind): void {
  const wrong = settings.group === '' ? (settings.taskId === undefined ? undefined : 'taskId') : 'group';
  if (wrong === undefined) return;
  throw new InvalidWorkflowError(
    `step "${step}" is a task "${type}", whose defaults have the option ${wrong}: a step cannot have it`,
  );
}
