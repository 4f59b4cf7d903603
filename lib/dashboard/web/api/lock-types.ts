/** A lock of unique tasks. */
export interface Lock {
  /** Null: it is hidden, or nothing is known of the lock. */
  name: string | null;
  /** Null: it is not known. */
  type: string | null;
  by: 'payload' | 'key' | 'last' | 'fields' | null;
  /** Null: it is hidden, or not known. */
  value: string | null;
  redacted: boolean;
  /** The task that holds it. */
  task_id: string;
  /** Null: that task is over and was not kept. */
  state: string | null;
  /** Null: it has no end. */
  expires_at: string | null;
}
