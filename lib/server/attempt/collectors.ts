import { setImmediate } from 'node:timers'; // the real one, also where a test fakes the global
import type { Clock, ClockTimer } from '../../clock.js';
import type { ActiveTask } from './active-task.js';
import type { BatchHandling, TaskHandlerEntry } from './handler.js';

/** Tasks of one call of a batch handler. */
export interface CollectedBatch {
  readonly tasks: ActiveTask[];
  readonly handling: BatchHandling;
}

export interface BatchStarter {
  /** Whether a slot is free. */
  hasRoom(): boolean;
  /** Takes a slot and calls the handler. */
  startBatch(batch: CollectedBatch): void;
}

/** Collects the claimed tasks of one batch handler until there are enough, or the first has waited long enough. */
class Collector {
  private tasks: ActiveTask[] = [];
  private timer: ClockTimer | undefined;

  constructor(
    private readonly handling: BatchHandling,
    private readonly clock: Clock,
    private readonly ready: (batch: CollectedBatch) => void,
  ) {}

  add(task: ActiveTask): void {
    if (this.tasks.push(task) >= this.handling.size) this.flush();
    else this.timer ??= this.clock.after(this.handling.wait, () => this.flush());
  }

  /** What is collected becomes a batch. */
  flush(): void {
    this.timer?.cancel();
    this.timer = undefined;
    const { tasks, handling } = this;
    if (tasks.length === 0) return;
    this.tasks = [];
    this.ready({ tasks, handling });
  }

  remove(task: ActiveTask): boolean {
    if (!removeFrom(this.tasks, task)) return false;
    if (this.tasks.length === 0) this.flush(); // the next one waits as long as any
    return true;
  }
}

/**
 * The collectors of a server: one per batch handler. A task that is collected takes no slot. A batch takes one when its handler is
 * called, and waits for it in the order in which the batches became ready.
 */
export class Collectors {
  private readonly byHandling = new Map<BatchHandling, Collector>();
  private readonly batches: CollectedBatch[] = [];
  /** How many tasks were collected since the server was made. */
  added = 0;
  private scheduled = false;

  constructor(
    entries: Iterable<TaskHandlerEntry>,
    clock: Clock,
    private readonly starter: BatchStarter,
  ) {
    for (const { batch } of entries) {
      if (batch) this.byHandling.set(batch, new Collector(batch, clock, (ready) => this.ready(ready)));
    }
  }

  /** Batches that wait for a slot. */
  get waiting(): number {
    return this.batches.length;
  }

  add(task: ActiveTask, handling: BatchHandling): void {
    this.added += 1;
    this.byHandling.get(handling)!.add(task);
  }

  /** Takes a task out whose handler was not called yet. Returns whether there was such a task. */
  remove(task: ActiveTask): boolean {
    const handling = task.handler?.batch;
    if (!handling) return false;
    if (this.byHandling.get(handling)!.remove(task)) return true;
    const index = this.batches.findIndex(({ tasks }) => removeFrom(tasks, task));
    if (index >= 0 && this.batches[index]!.tasks.length === 0) this.batches.splice(index, 1);
    return index >= 0;
  }

  /** No more tasks come: what is collected need not wait for others. */
  flush(): void {
    for (const collector of this.byHandling.values()) collector.flush();
  }

  /** A slot may be free: batches that wait begin, when the tasks of an exchange have got theirs. */
  slotFreed(): void {
    if (this.scheduled) return;
    this.scheduled = true;
    setImmediate(() => {
      this.scheduled = false;
      this.start();
    });
  }

  private ready(batch: CollectedBatch): void {
    this.batches.push(batch);
    this.start();
  }

  private start(): void {
    while (this.batches.length > 0 && this.starter.hasRoom()) this.starter.startBatch(this.batches.shift()!);
  }
}

function removeFrom(tasks: ActiveTask[], task: ActiveTask): boolean {
  const index = tasks.indexOf(task);
  if (index >= 0) tasks.splice(index, 1);
  return index >= 0;
}
