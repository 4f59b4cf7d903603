import { ClosedError } from '../../errors.js';
import type { FollowedTask, FollowingRole, FollowListener, FollowSource } from '../following.js';
import type { TaskPlace } from '../task-place.js';
import type { MemoryState } from './memory-state.js';
import { headsOf } from './note-list.js';
import { type TaskRecord, wellFormed } from './queue-store.js';

/** What a change shows in: two that are equal, field by field, are the same task unchanged. */
interface Seen {
  readonly task: TaskPlace;
  readonly record: TaskRecord | undefined;
  readonly state: TaskRecord['state'] | undefined;
  readonly result: Buffer | undefined;
  /** How often its handler has said something. */
  readonly said: number | undefined;
}

export class MemoryFollowing implements FollowingRole {
  private readonly sources = new Set<MemoryFollowSource>();

  constructor(private readonly state: MemoryState) {}

  async read(tasks: readonly TaskPlace[]): Promise<(FollowedTask | undefined)[]> {
    this.state.assertOpen();
    return tasks.map((task) => toFollowed(look(this.state, task)));
  }

  follow(listener: FollowListener): FollowSource {
    const source = new MemoryFollowSource(this.state, listener, () => this.sources.delete(source));
    this.sources.add(source);
    return source;
  }

  /** Ends every source. */
  end(): void {
    for (const source of this.sources) source.end();
  }
}

class MemoryFollowSource implements FollowSource {
  /** By queue, then by id. */
  private readonly armed = new Map<string, Map<string, Seen>>();
  private closed = false;
  private readonly onTasksChanged = (queue: string): void => this.compare(queue);

  constructor(
    private readonly state: MemoryState,
    private readonly listener: FollowListener,
    private readonly onClose: () => void,
  ) {
    state.taskListeners.add(this.onTasksChanged);
  }

  async arm(tasks: readonly TaskPlace[]): Promise<(FollowedTask | undefined)[]> {
    if (this.closed) throw new ClosedError('the source of notices of tasks is closed');
    this.state.assertOpen();
    return tasks.map((task) => {
      const seen = look(this.state, task);
      const queue = wellFormed(task.queue);
      let ofQueue = this.armed.get(queue);
      if (!ofQueue) this.armed.set(queue, (ofQueue = new Map()));
      ofQueue.set(wellFormed(task.id), seen);
      return toFollowed(seen);
    });
  }

  forget({ queue, id }: TaskPlace): void {
    const ofQueue = this.armed.get(wellFormed(queue));
    ofQueue?.delete(wellFormed(id));
    if (ofQueue?.size === 0) this.armed.delete(wellFormed(queue));
  }

  async close(): Promise<void> {
    this.end();
    this.onClose();
  }

  /** After this nothing is reported. */
  end(): void {
    this.closed = true;
    this.armed.clear();
    this.state.taskListeners.delete(this.onTasksChanged);
  }

  /** Calls the listener after the call that made the change, so that it finds the broker between two calls. */
  private compare(queue: string): void {
    for (const seen of this.armed.get(queue)?.values() ?? []) {
      if (isSame(seen, look(this.state, seen.task))) continue;
      this.forget(seen.task);
      queueMicrotask(() => {
        if (!this.closed) this.listener.onChanged(seen.task);
      });
    }
  }
}

function look(state: MemoryState, task: TaskPlace): Seen {
  const record = state.stores.get(wellFormed(task.queue))?.tasks.get(wellFormed(task.id));
  return { task, record, state: record?.state, result: record?.result, said: record?.notes?.changes };
}

const isSame = (one: Seen, other: Seen): boolean =>
  one.record === other.record && one.state === other.state && one.result === other.result && one.said === other.said;

const toFollowed = ({ record }: Seen): FollowedTask | undefined =>
  record && {
    state: record.state,
    result: record.result && Buffer.from(record.result),
    notes: headsOf(record.notes),
  };
