import type { StoredState } from '../wire/states.js';
import type { NoteHeads } from './notes.js';
import type { TaskPlace } from './task-place.js';

/** A task as those see it who wait for its end. */
export interface FollowedTask {
  readonly state: StoredState;
  /** What its handler has returned or written; `undefined` if nothing. */
  readonly result: Buffer | undefined;
  /** What its handler has said; `undefined`: nothing. */
  readonly notes: NoteHeads | undefined;
}

/** Notices of changed tasks, each armed by a read, so that no change falls between. */
export interface FollowSource {
  /**
   * Reads the tasks, in order (`undefined`: there is none), and arms a notice of the next change of each.
   * Rejects when there are no notices.
   */
  arm(tasks: readonly TaskPlace[]): Promise<(FollowedTask | undefined)[]>;
  /** Nobody wants the notice of this task any more. */
  forget(task: TaskPlace): void;
  close(): Promise<void>;
}

export interface FollowListener {
  /** The task has changed since it was armed, or is gone. Arm again for the next change. */
  onChanged(task: TaskPlace): void;
  /** All notices are lost: read, and arm again. */
  onLost(): void;
}

/** Tasks that somebody waits for. */
export interface FollowingRole {
  /** As {@link FollowSource.arm}, without notices. */
  read(tasks: readonly TaskPlace[]): Promise<(FollowedTask | undefined)[]>;
  /** A source of notices on connections of its own, opened at first use, whatever number of tasks it arms. */
  follow(listener: FollowListener): FollowSource;
}
