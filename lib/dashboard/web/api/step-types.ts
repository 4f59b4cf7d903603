/** A step of the handler of a task. */
export interface Step {
  name: string;
  /** `run`, `sleep`, `wait`, `call`, `each` or `undo`. */
  kind: string;
  state: 'done' | 'failed' | 'running' | 'retrying' | 'asleep' | 'waiting' | 'undone';
  started_at: string | null;
  ended_at: string | null;
  wake_at: string | null;
  signal: string | null;
  /** Null also when its queue may not be seen. */
  child: { queue: string; id: string } | null;
  tries: number;
  done: number | null;
  error: string;
  /** Null also when it is too large to be shown. */
  result: unknown;
  result_size: number;
  result_redacted: boolean;
}

export interface Steps {
  steps: Step[];
  total: number;
  signals: { name: string; count: number; taken: number }[];
  /** The task has failed for good. */
  undoing: { error: string; over: boolean } | null;
}
