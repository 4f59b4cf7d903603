import { Batches } from '../batches/batches.js';
import type { TaskContexts } from '../task/contexts.js';
import { Workflows, type WorkflowsDeps } from '../workflows/workflows.js';

/** The batches and workflows of a client, each made when it is first used. */
export class LinkedWork implements TaskContexts {
  private madeBatches: Batches | undefined;
  private madeWorkflows: Workflows | undefined;

  constructor(private readonly deps: ConstructorParameters<typeof Batches>[0] & WorkflowsDeps) {}

  get batches(): Batches {
    return (this.madeBatches ??= new Batches(this.deps));
  }

  get workflows(): Workflows {
    return (this.madeWorkflows ??= new Workflows(this.deps));
  }

  batchOf(queue: string, id: string) {
    return this.batches.ofMember({ queue, id });
  }

  workflowOf(...args: Parameters<TaskContexts['workflowOf']>) {
    return this.workflows.ofStep(...args);
  }

  /** Resolves when nothing of workflows is under way. */
  async closeWorkflows(): Promise<void> {
    await this.madeWorkflows?.close();
  }

  closeBatches(): void {
    this.madeBatches?.close();
  }
}
