/** A run of a workflow. */
export interface WorkflowRun {
  id: string;
  queue: string;
  name: string;
  state: 'running' | 'succeeded' | 'failed' | 'cancelled';
  started_at: string;
  ended_at: string | null;
  steps: number;
  open: number;
  failed: number;
  reason: string | null;
}

export interface WorkflowStep {
  name: string;
  /** Null: the queue of the task may not be seen. */
  type: string | null;
  queue: string | null;
  task_id: string;
  after: string[];
  on_failure: 'cancel' | 'run' | 'wait';
  optional: boolean;
  state: 'waiting' | 'ready' | 'succeeded' | 'failed' | 'cancelled';
  error: string | null;
  ready_at: string | null;
  ended_at: string | null;
  /** Its task could have started then, and no server has taken it for a minute or longer. */
  late_since: string | null;
}

export interface WorkflowRunWithGraph extends WorkflowRun {
  graph: WorkflowStep[];
}

export interface Batch {
  id: string;
  queue: string;
  name: string;
  state: 'open' | 'closed' | 'succeeded' | 'completed';
  total: number;
  pending: number;
  succeeded: number;
  failed: number;
  /** Queues with members that have failed. */
  failed_in: string[];
  opened_at: string;
  ended_at: string | null;
}
