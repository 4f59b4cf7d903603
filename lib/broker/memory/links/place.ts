import type { FailurePolicy, TimeoutPolicy, Watcher } from '../../links.js';
import { Expiring } from './expiring.js';
import type { RunRecord } from './run-record.js';

/** How a task ended. */
export interface End {
  readonly ok: boolean;
  /** Why it failed. */
  readonly reason: string;
}

/** Where an edge comes from: the place and the id of a task, or the key of a mark. */
export interface Origin {
  readonly from: string;
  readonly of: string;
}

/** A waiting task, and which of its edges is meant. */
export interface EdgeTarget {
  readonly to: string;
  readonly id: string;
  readonly n: number;
  /** The deadline of its wait, in Unix seconds. */
  readonly d: number;
}

/** A prerequisite as the waiting task keeps it. */
export interface Edge extends Origin {
  state: 'waiting' | 'succeeded' | 'failed';
  reason?: string;
}

/** What is stored beside a task that waits, or has waited. */
export interface WaitRecord {
  readonly edges: readonly Edge[];
  readonly onFailure: FailurePolicy;
  readonly onTimeout: TimeoutPolicy;
  /** Unix seconds. */
  readonly deadline: number;
  /** When it is to run once it is released, in Unix seconds. */
  readonly processAt: number | undefined;
  /** Since when it is archived because a prerequisite failed, in Unix seconds. */
  cancelledAt?: number | undefined;
}

/** Who watches a task. */
export interface Watched {
  /** By their JSON: each is there once. */
  readonly watchers: Map<string, Watcher>;
  /** They know that it is archived. */
  notified: boolean;
}

/** What is kept about links in one place: see links.ts of the broker. */
export class Place {
  /** By task. */
  readonly links = new Map<string, Watched>();
  /** Edges of tasks that are not stored yet, by task and edge. */
  readonly early = new Expiring<Map<string, End>>();
  /** In a place of marks: ends by key. */
  readonly marks = new Expiring<End>();
  /** In a place of marks: who waits for a key. */
  readonly waiters = new Expiring<Map<string, EdgeTarget>>();
  /** When something is due (Unix seconds), by the kind of timer and what it is about: `run <id>`. */
  readonly timers = new Map<string, number>();
  /** Runs of workflows, in the order of their starts. */
  readonly runs = new Map<string, RunRecord>();
  /** The homes of the batches that have members here, by batch. */
  readonly parts = new Map<string, string>();
  lease: { readonly owner: string; readonly expiresAt: number } | undefined;
}
