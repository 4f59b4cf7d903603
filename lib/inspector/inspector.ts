import type { BatchInfo } from '../task/batch.js';
import { type BatchListOptions, closeBatch, deleteBatch, getBatch, listBatches } from './batches.js';
import { TaskInspector } from './task-inspector.js';
import {
  cancelWorkflow,
  deleteWorkflow,
  getWorkflow,
  listWorkflows,
  retryWorkflow,
  type WorkflowDetails,
  type WorkflowInfo,
  type WorkflowListOptions,
} from './workflows.js';

export type { InspectorBroker } from './inspector-broker.js';

/**
 * Reads queues and tasks, and changes them (asynq's Inspector). Works in a process without a server.
 *
 * Methods with a queue reject with QueueNotFoundError if nothing was ever enqueued to it (or it was deleted), unless documented
 * otherwise. All reject with InvalidOptionError for invalid arguments, before anything is sent, and with BrokerUnavailableError.
 */
export class AsynqInspector extends TaskInspector {
  /** The batches of one queue or of all, newest first, page by page. */
  listBatches(options?: BatchListOptions): Promise<BatchInfo[]> {
    return listBatches(this.broker, options);
  }

  /** How far a batch is; `undefined` when the queue has no such batch. */
  getBatch(queue: string, id: string): Promise<BatchInfo | undefined> {
    return getBatch(this.broker, queue, id);
  }

  /** Closes a batch for the process that has opened it. Nothing happens to one that is closed. @throws BatchNotFoundError */
  closeBatch(queue: string, id: string): Promise<void> {
    return closeBatch(this.broker, this.relay, queue, id);
  }

  /** Deletes what is known of a batch that has ended; its tasks stay. @throws BatchNotFoundError; BatchRunningError */
  deleteBatch(queue: string, id: string): Promise<void> {
    return deleteBatch(this.broker, this.relay, queue, id);
  }

  /** The runs of workflows, newest first; of all queues, or of one. */
  listWorkflows(options?: WorkflowListOptions): Promise<WorkflowInfo[]> {
    return listWorkflows(this.broker, options);
  }

  /** A run with its graph; `undefined` when the queue has no such run. @param id `<name of the workflow>/<id given to start>` */
  getWorkflow(queue: string, id: string): Promise<WorkflowDetails | undefined> {
    return getWorkflow(this.broker, queue, id);
  }

  /**
   * Ends a run: steps that wait do not run, their tasks are deleted, and those that are active are cancelled. Returns whether
   * this call has ended it.
   *
   * @throws WorkflowNotFoundError
   */
  cancelWorkflow(queue: string, id: string, reason?: string): Promise<boolean> {
    return cancelWorkflow(this.broker, this.relay, queue, id, reason);
  }

  /**
   * Runs the failed steps of a run again; what was cancelled because of them waits for them again. Returns how many run again.
   *
   * @throws WorkflowNotFoundError; WorkflowStateError when no step has failed, or the run was cancelled
   */
  retryWorkflow(queue: string, id: string): Promise<number> {
    return retryWorkflow(this.broker, this.relay, queue, id);
  }

  /**
   * Deletes an ended run, its results, and the archived tasks of its steps.
   *
   * @throws WorkflowNotFoundError; WorkflowStateError while it is running
   */
  deleteWorkflow(queue: string, id: string): Promise<void> {
    return deleteWorkflow(this.broker, this.relay, queue, id);
  }
}
