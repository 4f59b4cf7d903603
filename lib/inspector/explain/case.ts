import type { StoredTask } from '../../broker/inspection.js';
import type { ObservedServer, TaskPosition } from '../../broker/obstacles.js';
import type { TaskWait } from '../waits.js';
import type { Fleet } from './fleet.js';
import type { SuspendedStep } from './reasons.js';

/** All that is known of a task that is explained. */
export interface Case {
  readonly queue: string;
  readonly id: string;
  readonly task: StoredTask;
  readonly position: TaskPosition;
  readonly servers: readonly ObservedServer[];
  readonly fleet: Fleet;
  /** What it waits for, or has waited for. */
  readonly wait: TaskWait | undefined;
  /** The steps in which its handler sleeps, or waits. */
  readonly steps: readonly SuspendedStep[];
  /** Milliseconds since the epoch. */
  readonly now: number;
}
