/** The JSON of the console's REST API, as far as the page uses it. Times are RFC 3339 unless their name has a unit. */

export const STATES = ['active', 'pending', 'aggregating', 'scheduled', 'retry', 'archived', 'completed'] as const;
export type State = (typeof STATES)[number];

export type Role = 'view' | 'act' | 'destroy';

export interface Config {
  version: string;
  connection: string;
  key_prefix: string;
  /** For what belongs to no queue, and in queues not named in `queue_roles`; null: none. */
  role: Role | null;
  /** By name; `mail*`: of all queues whose names begin so. */
  queue_roles: Record<string, Role>;
  read_only: boolean;
  refresh_ms: number;
  decoders: string[];
  /** Whether there is a history in Prometheus. */
  prometheus: boolean;
  title: string;
}

export interface Queue extends Record<State, number> {
  queue: string;
  memory_usage_bytes: number;
  size: number;
  groups: number;
  /** Age of the oldest pending task. */
  oldest_pending_ms: number;
  processed: number;
  succeeded: number;
  failed: number;
  processed_total: number;
  failed_total: number;
  paused: boolean;
}

/** A queue that could not be read: the others are complete nevertheless. */
export interface UnreadableQueue {
  queue: string;
  error: string;
}

export type QueueRow = Queue | UnreadableQueue;

export const isUnreadable = (row: QueueRow): row is UnreadableQueue =>
  typeof (row as UnreadableQueue).error === 'string';

export interface Daily {
  queue: string;
  processed: number;
  failed: number;
  /** `YYYY-MM-DD`, UTC. */
  date: string;
}

export interface QueueSample extends Record<State, number> {
  processed_total: number;
  failed_total: number;
  latency_ms: number;
}

export interface Sample {
  t: string | number;
  queues: Record<string, QueueSample>;
}

export interface Live {
  now: string;
  sequence: number;
  interval_ms: number;
  queues: QueueRow[];
  samples: Sample[];
}

export interface Group {
  group: string;
  size: number;
}

/** Failures of one type for one reason. */
export interface FailureGroup {
  type: string;
  error: string;
  /** What all of their errors contain. */
  match: string;
  retry: number;
  archived: number;
  first_failed_at: string | null;
  last_failed_at: string | null;
  task_id: string;
}

export interface Failures {
  failures: FailureGroup[];
  scanned: number;
  total: number;
}
