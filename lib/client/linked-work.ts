import type { StepCallPreparer } from '../broker/checkpoints.js';
import type { LinkedRequest } from '../broker/links.js';
import { calledTask } from '../enqueue/called-task.js';
import { Batches } from '../batches/batches.js';
import type { TaskContexts } from '../task/contexts.js';
import { Workflows, type WorkflowsDeps } from '../workflows/workflows.js';

/** The batches and workflows of a client, each made when it is first used. */
export class LinkedWork implements TaskContexts, StepCallPreparer {
  private madeBatches: Batches | undefined;
  private madeWorkflows: Workflows | undefined;

  constructor(private readonly deps: ConstructorParameters<typeof Batches>[0] & WorkflowsDeps) {}

  get batches(): Batches {
    return (this.madeBatches ??= new Batches(this.deps));
  }

  get workflows(): Workflows {
    return (this.madeWorkflows ??= new Workflows(this.deps));
  }

  batchOf(...args: Parameters<TaskContexts['batchOf']>) {
    return this.batches.ofTask(...args);
  }

  workflowOf(...args: Parameters<TaskContexts['workflowOf']>) {
    return this.workflows.ofStep(...args);
  }

  calledBy(parentId: string, name: string, task: unknown, payload: unknown, options: unknown): LinkedRequest {
    const { broker, preparer, tracing } = this.deps;
    return calledTask({ parentId, name, task, payload, options }, broker.clock.now(), preparer, tracing);
  }

  /** Resolves when nothing of workflows is under way. */
  async closeWorkflows(): Promise<void> {
    await this.madeWorkflows?.close();
  }

  closeBatches(): void {
    this.madeBatches?.close();
  }
}
