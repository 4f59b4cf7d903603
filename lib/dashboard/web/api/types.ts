/**
 * The JSON of the console's REST API, as far as the page uses it. Times are RFC 3339 unless their
 * name has a unit.
 */

export const STATES = [
  'active',
  'pending',
  'aggregating',
  'waiting',
  'held',
  'scheduled',
  'retry',
  'archived',
  'completed',
] as const;
export type State = (typeof STATES)[number];

export type Role = 'view' | 'act' | 'destroy';

export interface Config {
  version: string;
  connection: string;
  key_prefix: string;
  /**
   * The role for what belongs to no queue, and in queues that `queue_roles` does not name; null:
   * none.
   */
  role: Role | null;
  /** By queue name; `mail*` stands for all queues whose names begin with `mail`. */
  queue_roles: Record<string, Role>;
  read_only: boolean;
  refresh_ms: number;
  decoders: string[];
  /** Whether Prometheus provides a history. */
  prometheus: boolean;
  /** Whether the process of the console has an outbox. */
  outbox: boolean;
  title: string;
}

export interface Queue extends Record<State, number> {
  queue: string;
  memory_usage_bytes: number;
  size: number;
  groups: number;
  /** Age of the oldest pending task. */
  oldest_pending_ms: number;
  /** Age of the task that is held longest. */
  oldest_held_ms: number;
  processed: number;
  succeeded: number;
  failed: number;
  processed_total: number;
  failed_total: number;
  paused: boolean;
}

/** A queue that could not be read. The others are still complete. */
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

/** Failures with the same type and reason. */
export interface FailureGroup {
  type: string;
  error: string;
  /** A text that all of their errors contain. */
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

/** How long attempts took, by type: of the last attempts in the event stream of the fleet. */
export interface Durations {
  types: {
    type: string;
    queue: string;
    attempts: number;
    failed: number;
    p50_ms: number;
    p95_ms: number;
    longest_ms: number;
  }[];
  attempts: number;
  /** When the first and the last of them ended; null: there is none. */
  from: string | null;
  to: string | null;
}
