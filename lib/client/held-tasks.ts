import { withoutCaller } from '../enqueue/acknowledging.js';
import type { EnqueueResult } from '../enqueue/enqueue-result.js';
import { infoOf, type PreparedTask } from '../enqueue/prepared-task.js';
import type { TaskInfo } from '../task/info.js';
import type { EnqueueSpan } from '../tracing/tracing.js';
import type { EnqueueTransactions } from '../transactions/enqueue-transactions.js';
import type { TransactionScope } from '../transactions/transactions.js';
import { AfterCommit, type AfterCommitDeps } from './after-commit.js';

/** Tasks that are enqueued in a transaction: rows of its database with an outbox, else kept here until the commit. */
export class HeldTasks {
  private readonly afterCommit: AfterCommit;

  /** @param transactions its outbox is asked for at each call: it comes with a module of its own */
  constructor(
    private readonly transactions: Pick<EnqueueTransactions, 'outbox' | 'onHold'>,
    deps: AfterCommitDeps,
  ) {
    this.afterCommit = new AfterCommit(deps);
  }

  async one(scope: TransactionScope, task: PreparedTask, span: EnqueueSpan | undefined): Promise<TaskInfo> {
    try {
      await this.hold(scope, [task]);
    } catch (error) {
      span?.end(error);
      throw error;
    }
    span?.end();
    return infoOf(task);
  }

  /** One result per task, in order; an error is about a task that cannot be prepared. */
  async many(
    scope: TransactionScope,
    count: number,
    prepare: (index: number) => PreparedTask,
  ): Promise<EnqueueResult[]> {
    const tasks: PreparedTask[] = [];
    const results = Array.from({ length: count }, (_, index): EnqueueResult => {
      try {
        const task = prepare(index);
        tasks.push(task);
        return { ok: true, info: infoOf(task) };
      } catch (error) {
        return { ok: false, error: error as Error };
      }
    });
    if (tasks.length > 0) await this.hold(scope, tasks);
    return results;
  }

  /** Resolves when nothing is under way. */
  close(): Promise<void> {
    return this.afterCommit.close();
  }

  private async hold(scope: TransactionScope, given: readonly PreparedTask[]): Promise<void> {
    const tasks = given.map(withoutCaller);
    const { outbox, onHold } = this.transactions;
    if (outbox && !scope.inProcess) {
      return outbox.write(scope, tasks);
    }
    onHold?.(scope, tasks);
    this.afterCommit.hold(scope, tasks);
  }
}
