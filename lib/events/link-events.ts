import type { WaitEnd } from '../task/links.js';
import type { TaskRef } from './task-ref.js';

/** The end of a wait. */
export interface EndedWait {
  readonly end: WaitEnd;
  /** The state of the task now. */
  readonly state: 'pending' | 'scheduled' | 'archived';
  /** Why it was archived. */
  readonly error?: Error;
}

/**
 * The events of tasks that wait for tasks, by name. The first four are emitted in the process whose call
 * to Redis has brought it about, any process of the fleet, and in no other. They are not stored: one is
 * missing when that process dies in this moment.
 */
export interface LinkEventMap {
  /**
   * A task waits for others no more; after `revived`, one that was cancelled runs after all. What an
   * operator does to a waiting task is no such end.
   */
  waitEnded: EndedWait & { readonly task: TaskRef };
  /**
   * A run of a workflow has ended. A failed one may end once more, after a retry. `failed`: how many
   * of its `steps` have failed.
   */
  workflowEnded: {
    readonly queue: string;
    readonly id: string;
    readonly name: string;
    readonly state: 'succeeded' | 'failed' | 'cancelled';
    readonly steps: number;
    readonly failed: number;
    readonly startedAt: Date;
    readonly endedAt: Date;
  };
  /**
   * A batch has ended. A `completed` one has `failed` members; when these succeed after all, it ends
   * once more.
   */
  batchEnded: {
    readonly queue: string;
    readonly id: string;
    readonly name: string;
    readonly state: 'succeeded' | 'completed';
    readonly total: number;
    readonly failed: number;
    readonly openedAt: Date;
    readonly endedAt: Date;
  };
  /** A callback of a batch is due: its task is stored, or on the way to its queue. */
  batchCalledBack: {
    readonly queue: string;
    readonly id: string;
    /** Of the batch. */
    readonly name: string;
    readonly callback: 'success' | 'complete' | 'death';
  };
  /** This process has started a run of a workflow. */
  workflowStarted: { readonly queue: string; readonly id: string; readonly name: string; readonly steps: number };
  /**
   * Messages between linked tasks have reached their place: a queue, or `~type`, where the ends of
   * tasks with a key are remembered.
   */
  parcelsCarried: { readonly place: string; readonly parcels: number };
  /**
   * A place of links could not be reached. The messages are stored; some server of the fleet
   * carries them within seconds.
   */
  relayFailed: { readonly place: string; readonly parcels: number; readonly error: unknown };
  /**
   * What this server found in a place of links: `settled` ends of tasks whose watchers nobody had
   * notified (a Go server ran them, say) and deadlines that passed; `parcels` messages that were left behind.
   */
  linksKept: { readonly place: string; readonly settled: number; readonly parcels: number };
}
