import type { Decoded } from './task-types.js';
import type { State } from './types.js';

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

export interface Entry {
  id: string;
  spec: string;
  task_type: string;
  task_payload: string;
  options: string[];
  next_enqueue_at: string;
  prev_enqueue_at: string | null;
  can_pause: boolean;
  paused_at: string | null;
  queue: string;
  payload_size: number;
  payload_cut: boolean;
  redacted: boolean;
}

/** One entry, with its whole payload unless that is too large. */
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

/** A change made through the console, or a refused attempt. */
export interface AuditEntry {
  id: string;
  at: string;
  actor: string;
  action: string;
  /** `started`: the result is not known. */
  outcome: 'done' | 'failed' | 'refused' | 'started';
  process: string;
  queue?: string;
  to_queue?: string;
  task_id?: string;
  new_task_id?: string;
  scope?: 'batch' | 'all' | 'matching';
  criteria?: string;
  state?: State;
  group?: string;
  schedule?: string;
  workflow?: string;
  batch?: string;
  row?: string;
  detail?: string;
  count?: number;
  failed?: number;
  code?: string;
  /** How many entries before this one were not recorded. */
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

/** The response of Prometheus to one range query, as far as the page reads it. */
export interface PrometheusResponse {
  status: string;
  error?: string;
  errorType?: string;
  data?: {
    result?: readonly {
      metric?: Readonly<Record<string, string>>;
      values?: readonly (readonly [seconds: number, value: string])[];
    }[];
  };
}
