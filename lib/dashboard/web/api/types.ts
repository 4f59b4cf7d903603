import type { TaskAction } from '../../../task/actions.js';

/** What the console's HTTP interface answers, as far as the page uses it. Times are RFC 3339 unless their name has a unit. */

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
export interface BadQueue {
  queue: string;
  error: string;
}

export type QueueRow = Queue | BadQueue;

export const isBad = (row: QueueRow): row is BadQueue => typeof (row as BadQueue).error === 'string';

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

/** A task of a list; some fields only come with some states. */
export interface ListedTask {
  id: string;
  queue: string;
  type: string;
  payload: string;
  state: State;
  max_retry: number;
  retried: number;
  error_message: string;
  group: string;
  payload_size: number;
  payload_cut: boolean;
  redacted: boolean;
  last_failed_at?: string;
  next_process_at?: string;
  pending_since?: string | null;
  completed_at?: string;
  start_time?: string;
  deadline?: string;
  is_orphaned?: boolean;
  ttl_seconds?: number;
}

export interface TaskList {
  tasks: ListedTask[];
  stats: Queue;
  groups?: Group[];
  next_cursor: string | null;
  damaged: { id: string; error: string }[];
  scanned?: number;
}

export interface Group {
  group: string;
  size: number;
}

export interface Decoded {
  decoder: string;
  value: unknown;
}

export interface TaskWorker {
  server_id: string;
  host: string;
  pid: number;
  started_at: string;
  deadline: string | null;
}

export interface Task {
  id: string;
  queue: string;
  type: string;
  payload: string;
  state: State;
  max_retry: number;
  retried: number;
  error_message: string;
  last_failed_at: string;
  timeout_seconds: number;
  deadline: string;
  next_process_at: string;
  pending_since: string | null;
  completed_at: string;
  result: string;
  ttl_seconds: number;
  group: string;
  headers: Record<string, string>;
  retention_seconds: number;
  payload_size: number;
  payload_base64: string | null;
  /** What an edit says it replaces; null when the payload is not shown whole. */
  payload_sha256: string | null;
  payload_too_large?: boolean;
  payload_decoded: Decoded | null;
  result_size: number;
  payload_redacted: boolean;
  result_redacted: boolean;
  result_base64: string | null;
  result_decoded: Decoded | null;
  redacted: boolean;
  worker: TaskWorker | null;
  actions: TaskAction[];
}

export interface Worker {
  task_id: string;
  queue: string;
  task_type: string;
  task_payload: string;
  start_time: string;
  deadline?: string | null;
}

export interface Server {
  id: string;
  host: string;
  pid: number;
  concurrency: number;
  queue_priorities: Record<string, number>;
  strict_priority_enabled: boolean;
  start_time: string;
  status: string;
  active_workers: Worker[] | null;
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

export interface Entry {
  id: string;
  spec: string;
  task_type: string;
  task_payload: string;
  options: string[];
  next_enqueue_at: string;
  prev_enqueue_at: string | null;
  queue: string;
  payload_size: number;
  payload_cut: boolean;
  redacted: boolean;
}

/** An entry by itself: with its payload whole, unless it is too large. */
export interface EntryWithPayload extends Entry {
  payload_base64: string | null;
  payload_redacted: boolean;
  payload_decoded: Decoded | null;
  payload_too_large: boolean;
}

export interface EnqueueEvent {
  task_id: string;
  enqueued_at: string;
}

/** A change made through the console, or an attempt at one. */
export interface AuditEntry {
  id: string;
  at: string;
  actor: string;
  action: string;
  /** `started`: no result is known. */
  outcome: 'done' | 'failed' | 'refused' | 'started';
  process: string;
  queue?: string;
  to_queue?: string;
  task_id?: string;
  new_task_id?: string;
  scope?: 'batch' | 'all';
  state?: State;
  group?: string;
  schedule?: string;
  detail?: string;
  count?: number;
  failed?: number;
  code?: string;
  /** So many before it are not recorded. */
  missing?: number;
}

export interface RedisInfo {
  address: string;
  info: Record<string, string>;
  raw_info: string;
  cluster: boolean;
  raw_cluster_nodes?: string;
  queue_locations: { queue: string; keyslot: number; nodes: string[] | null }[] | null;
  version: string | null;
  used_memory: number | null;
  maxmemory: number | null;
  maxmemory_policy: string | null;
  connected_clients: number | null;
  ops_per_second: number | null;
  uptime_seconds: number | null;
  role: string | null;
  warnings: string[];
}

/** What a task is made of; sent to enqueue, clone and edit. */
export interface TaskInput {
  queue?: string;
  type?: string;
  payload_text?: string;
  payload_base64?: string;
  task_id?: string;
  max_retry?: number;
  timeout_seconds?: number;
  deadline?: string;
  unique_seconds?: number;
  process_at?: string;
  process_in_seconds?: number;
  retention_seconds?: number;
  group?: string;
  headers?: Record<string, string>;
}
