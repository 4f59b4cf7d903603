/** An attempt of a task that has ended. */
export interface Attempt {
  number: number;
  outcome: 'failed' | 'crashed' | 'completed';
  /** Null after a crash. */
  started_at: string | null;
  ended_at: string;
  duration_seconds: number | null;
  server: string | null;
  error: string;
  stack: string | null;
}

export interface Attempts {
  /** Oldest first. */
  attempts: Attempt[];
  total: number;
}
