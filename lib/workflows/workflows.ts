import { randomUUID } from 'node:crypto';
import { mapInTurns } from '../async.js';
import type { Broker } from '../broker/broker.js';
import type { RunSummary, WorkflowsRole } from '../broker/workflows.js';
import type { Preparer } from '../enqueue/preparer.js';
import type { AsynqEvents } from '../events/events.js';
import { InvalidWorkflowError, WorkflowNotFoundError, WorkflowTimeoutError } from '../errors.js';
import { EndPoller, type Polled } from '../links/end-poller.js';
import type { Relay } from '../links/relay.js';
import type { StepLink } from '../task/contexts.js';
import type { WorkflowContext } from '../task/workflow-context.js';
import type { Tracing } from '../tracing/tracing.js';
import { describe, rejectUnknownKeys, requireObject } from '../validation.js';
import { requireName, requireRunId, runIdOf } from './names.js';
import { toNewRun } from './prepare.js';
import { checkStartOptions, requireRunQueue } from './run-options.js';
import { StepContext } from './step-context.js';
import { Starter } from './starter.js';
import { RUN_OPTION_NAMES, type StartOptions } from './types.js';
import { Workflow } from './workflow.js';
import { WorkflowRun } from './workflow-run.js';

/** The part of a broker that starts and follows runs. */
export type WorkflowsBroker = Pick<
  Broker,
  'workflows' | 'links' | 'administration' | 'cancellation' | 'clock' | 'manual'
>;

/** A workflow to start, and the options of its run. */
export interface WorkflowItem<Steps extends object = object> extends StartOptions {
  workflow: Workflow<Steps>;
}

/** What became of one workflow of `startMany`. */
export type StartResult<Steps extends object = Record<string, unknown>> =
  | { readonly ok: true; readonly run: WorkflowRun<Steps>; readonly error?: undefined }
  /** InvalidWorkflowError, InvalidTaskError or BrokerUnavailableError. */
  | { readonly ok: false; readonly error: Error; readonly run?: undefined };

export interface WorkflowsDeps {
  readonly broker: WorkflowsBroker;
  readonly preparer: Preparer;
  readonly relay: Relay;
  readonly tracing: Tracing | undefined;
  readonly events: AsynqEvents | undefined;
}

/** Starts runs of workflows, and finds them again. */
export class Workflows {
  private readonly starter: Starter;
  private readonly poller: EndPoller<RunSummary>;

  constructor(private readonly deps: WorkflowsDeps) {
    const { broker, relay } = deps;
    this.starter = new Starter(broker.workflows, relay);
    this.poller = new EndPoller(awaitedRuns(broker.workflows), broker);
  }

  /** See AsynqClient.start. */
  async start<Steps extends object>(flow: Workflow<Steps>, options: StartOptions): Promise<WorkflowRun<Steps>> {
    requireWorkflow(flow, 'start');
    checkStartOptions(options);
    const { broker, preparer, tracing, events } = this.deps;
    const id = runIdOf(flow.name, options.id ?? randomUUID());
    const queue = options.queue ?? this.queueOf(flow);
    const span = tracing?.startEnqueueMany(flow.steps.length, undefined);
    try {
      const run = toNewRun(flow, merge(flow.options, options), { id, now: broker.clock.now(), preparer, span });
      const status = await this.starter.start(queue, run);
      span?.end();
      const created = status === 'started';
      if (created) events?.emit('workflowStarted', { queue, id, name: flow.name, steps: run.steps.length });
      return this.handle<Steps>(queue, id, created);
    } catch (error) {
      span?.end(error, flow.steps.length);
      throw error;
    }
  }

  /** See AsynqClient.startMany. */
  async startMany(items: readonly WorkflowItem[]): Promise<StartResult<object>[]> {
    if (!Array.isArray(items)) {
      throw new InvalidWorkflowError(`startMany takes an array of { workflow, id, … }, not ${describe(items)}`);
    }
    const started = await mapInTurns(items as readonly WorkflowItem[], (item) => this.startItem(item));
    return Promise.all(started);
  }

  /** See AsynqClient.run. */
  find<Steps extends object>(
    flow: Workflow<Steps> | string,
    id: string,
    options: { readonly queue?: string } = {},
  ): WorkflowRun<Steps> {
    requireObject(options, 'options of run', InvalidWorkflowError);
    rejectUnknownKeys(options, ['queue'], 'option of run:', InvalidWorkflowError);
    requireRunId(id);
    const given = options.queue === undefined ? undefined : requireRunQueue(options.queue, 'run');
    if (typeof flow === 'string') {
      return this.handle(given ?? this.defaultQueue(), runIdOf(requireName(flow, 'name of a workflow'), id), false);
    }
    requireWorkflow(flow, 'run');
    return this.handle(given ?? this.queueOf(flow), runIdOf(flow.name, id), false);
  }

  /** What the task of a step sees of its run. Reads nothing. */
  ofStep(taskId: string, link: StepLink): WorkflowContext {
    return new StepContext(this.deps, taskId, link);
  }

  /** Sends what is collected, and ends every `done` under way. */
  async close(): Promise<void> {
    await this.starter.close();
    this.poller.close();
  }

  private async startItem(item: WorkflowItem): Promise<StartResult<object>> {
    try {
      const { workflow, ...options } = requireObject(
        item,
        'a workflow of startMany',
        InvalidWorkflowError,
      ) as typeof item;
      return { ok: true, run: await this.start(workflow, options) };
    } catch (error) {
      return { ok: false, error: error as Error };
    }
  }

  private queueOf({ options, steps }: Workflow): string {
    if (options.queue !== undefined) return options.queue;
    const { task, options: taskOptions } = steps[0]!;
    return this.deps.preparer.kindOf(task, taskOptions).settings.queue;
  }

  private defaultQueue(): string {
    return this.deps.preparer.kindOf('any', undefined).settings.queue;
  }

  private handle<Steps extends object>(queue: string, id: string, created: boolean): WorkflowRun<Steps> {
    return new WorkflowRun<Steps>({ ...this.deps, poller: this.poller }, queue, id, created);
  }
}

/** Runs, as `done` waits for them. */
export const awaitedRuns = (workflows: Pick<WorkflowsRole, 'summary'>): Polled<RunSummary> => ({
  what: 'a run',
  read: (queue, id) => workflows.summary(queue, id),
  hasEnded: ({ state }) => state !== 'running',
  missing: (queue, id) => new WorkflowNotFoundError(queue, id),
  late: (queue, id, within, options) =>
    new WorkflowTimeoutError(
      `run "${id}" of queue "${queue}" has not ended within ${within}; it goes on: wait again, or look at its steps with ` +
        'AsynqInspector.getWorkflow(), and ask explain() why the task of a ready one does not run',
      options,
    ),
});

function requireWorkflow(flow: unknown, caller: string): void {
  if (flow instanceof Workflow) return;
  throw new InvalidWorkflowError(
    `${caller} takes a workflow, made by workflow(), chain() or parallel(), not ${describe(flow)}`,
  );
}

/** The options of the call, then those of the workflow. */
function merge(base: StartOptions, options: StartOptions): StartOptions {
  const merged: Record<string, unknown> = {};
  for (const name of RUN_OPTION_NAMES) merged[name] = options[name] ?? base[name];
  return merged;
}
