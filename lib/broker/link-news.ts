import type { WaitEnd } from '../task/links.js';

/*
 * What a step of the store has brought about among links. The process whose call it was learns of it,
 * and nobody else: it is not stored, and lost with a reply that is lost. It becomes events.
 */

/** A task waits no more, or is revived. */
export interface WaitNews {
  readonly kind: 'wait';
  readonly id: string;
  readonly type: string;
  readonly end: WaitEnd;
  readonly state: 'pending' | 'scheduled' | 'archived';
  /** Why it was archived. */
  readonly reason?: string;
}

/** A run has ended; it may run again, and end once more. */
export interface RunNews {
  readonly kind: 'run';
  readonly id: string;
  readonly name: string;
  readonly state: 'succeeded' | 'failed' | 'cancelled';
  readonly steps: number;
  readonly failed: number;
  /** Milliseconds since the epoch. */
  readonly startedAt: number;
  readonly endedAt: number;
}

/** A batch has ended; failed members may succeed when they are run again, and it ends once more. */
export interface BatchNews {
  readonly kind: 'batch';
  readonly id: string;
  readonly name: string;
  readonly state: 'succeeded' | 'completed';
  readonly total: number;
  readonly failed: number;
  /** Milliseconds since the epoch. */
  readonly openedAt: number;
  readonly endedAt: number;
}

/** A callback of a batch is due: its task is stored, or on the way to its queue. */
export interface CallbackNews {
  readonly kind: 'callback';
  readonly id: string;
  readonly name: string;
  readonly callback: 'success' | 'complete' | 'death';
}

type AnyNews = WaitNews | RunNews | BatchNews | CallbackNews;

/** One of these, and the queue that it is about. */
export type LinkNews = {
  readonly [K in AnyNews['kind']]: Extract<AnyNews, { kind: K }> & { readonly queue: string };
}[AnyNews['kind']];
