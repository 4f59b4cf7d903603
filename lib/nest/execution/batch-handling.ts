import type { ContextId } from '@nestjs/core';
import { isObservable, lastValueFrom } from 'rxjs';
import { InvalidHandlerError } from '../../errors.js';
import { type BatchHandling, FailedTask } from '../../server/index.js';
import type { TaskContext } from '../../task/context.js';
import type { ResolvedBatch } from '../decorators/batch-option.js';
import type { DiscoveredHandler } from '../discovery/handler.explorer.js';
import { batchBytes, batchSteps } from '../names/nest.messages.js';
import { BatchCall } from './batch-call.js';
import { batchResults } from './batch-results.js';
import type { ExceptionFilters } from './exception-filters.js';
import { explained } from './global-enhancers.js';
import { judgeFailure, type InvalidPayloadPolicy } from './invalid-payload.js';
import type { Invoker } from './invoker.js';
import type { ParamPlan } from './param-plan.js';
import { TaskExecutionContext } from './task-execution-context.js';

interface BatchParts extends ResolvedBatch {
  readonly handler: DiscoveredHandler;
  readonly plan: ParamPlan;
  /** @throws for a payload that cannot be decoded */
  readonly read: (task: TaskContext) => unknown;
  readonly invoker: Invoker;
  readonly filters: ExceptionFilters;
  readonly settings: { readonly invalidPayload: InvalidPayloadPolicy };
}

/** @throws InvalidHandlerError when a parameter takes bytes */
export function batchHandling(parts: BatchParts): BatchHandling {
  const { size, wait, plan, handler } = parts;
  if (plan.takesBytes) throw new InvalidHandlerError(batchBytes(handler.label));
  if (plan.takesSteps) throw new InvalidHandlerError(batchSteps(handler.label));
  return { size, wait, handle: (tasks) => new BatchRun(parts, tasks).run() };
}

/** One call of a batch handler, which may leave out tasks whose payload is invalid. */
class BatchRun {
  private readonly entries = new Map<TaskContext, unknown>();
  private readonly payloads: unknown[] = [];
  private readonly contexts: TaskContext[] = [];
  private readonly failures: [task: TaskContext, payload: unknown, error: unknown][] = [];

  constructor(
    private readonly parts: BatchParts,
    private readonly tasks: readonly TaskContext[],
  ) {}

  async run(): Promise<readonly unknown[]> {
    this.decode();
    const { contextId, invoke } = this.parts.invoker(this.contexts);
    if (this.contexts.length > 0) await this.call(invoke, contextId);
    for (const [task, payload, error] of this.failures) await this.fail([task], [payload], error, contextId);
    return this.tasks.map((task) => this.entries.get(task));
  }

  private decode(): void {
    for (const task of this.tasks) {
      try {
        this.payloads.push(this.parts.read(task));
        this.contexts.push(task);
      } catch (error) {
        this.failures.push([task, task.payload, error]);
      }
    }
  }

  private async call(invoke: ReturnType<Invoker>['invoke'], contextId: ContextId): Promise<void> {
    const { payloads, contexts, parts } = this;
    const call = new BatchCall(payloads, contexts, parts.plan.own, parts.items);
    const left = (): number[] => [...contexts.keys()].filter((position) => !call.refused.has(position));
    try {
      const returned = await invoke(payloads, contexts);
      const value: unknown = isObservable(returned) ? await lastValueFrom(returned) : returned;
      const positions = left();
      const results = await batchResults(value, positions.length, parts.handler.label);
      for (const [index, position] of positions.entries()) this.take(position, results[index]);
    } catch (error) {
      const tasks = left().map((position) => contexts[position]!);
      const theirs = left().map((position) => payloads[position]);
      if (tasks.length > 0) await this.fail(tasks, theirs, error, contextId);
    }
    for (const [position, error] of call.refused) this.take(position, new FailedTask(error));
  }

  private take(position: number, entry: unknown): void {
    const task = this.contexts[position]!;
    if (entry instanceof FailedTask) this.failures.push([task, this.payloads[position], entry.error]);
    else this.entries.set(task, entry);
  }

  /** Exception filters get each error once, with the tasks that it fails. */
  private async fail(
    tasks: readonly TaskContext[],
    payloads: readonly unknown[],
    error: unknown,
    contextId: ContextId,
  ): Promise<void> {
    const { handler, filters, settings } = this.parts;
    const context = new TaskExecutionContext([payloads, tasks], handler.instanceClass, handler.method);
    const filtered = await filters.apply(error, context, contextId);
    for (const task of tasks) {
      const failure = explained(filtered, task.type);
      this.entries.set(task, new FailedTask(judgeFailure(failure, task.type, settings.invalidPayload)));
    }
  }
}
