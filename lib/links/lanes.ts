/** Takes the items of one batch off a lane: as many from the first as fit, at least one. */
export type BatchSize<T> = (items: Iterable<T>) => number;

interface Lane<T> {
  /** By identity: a newer item takes the place of an older one that has not left. */
  readonly waiting: Map<string, T>;
  busy: boolean;
}

/**
 * Works off items by lane, in batches: one batch per lane is under way, and what comes meanwhile is
 * the next one. So a lane that is idle works at once, and a busy one works in large batches.
 */
export class Lanes<T> {
  private readonly lanes = new Map<string, Lane<T>>();

  constructor(
    /** Must not reject. Returns whether to go on; else what waits in the lane is dropped. */
    private readonly work: (lane: string, batch: T[]) => Promise<boolean>,
    private readonly sizeOf: BatchSize<T>,
    /** A lane has nothing left. */
    private readonly onIdle: () => void,
  ) {}

  get idle(): boolean {
    return this.lanes.size === 0;
  }

  /** To be followed by `start`. */
  add(name: string, identity: string, item: T): void {
    let lane = this.lanes.get(name);
    if (!lane) this.lanes.set(name, (lane = { waiting: new Map(), busy: false }));
    lane.waiting.delete(identity); // the order is that of the newest
    lane.waiting.set(identity, item);
  }

  /** Begins with every lane that is idle. */
  start(): void {
    for (const [name, lane] of this.lanes) if (!lane.busy) void this.workOff(name, lane);
  }

  private async workOff(name: string, lane: Lane<T>): Promise<void> {
    lane.busy = true;
    while (lane.waiting.size > 0) {
      if (!(await this.work(name, take(lane, this.sizeOf)))) lane.waiting.clear();
    }
    this.lanes.delete(name);
    if (this.idle) this.onIdle();
  }
}

function take<T>({ waiting }: Lane<T>, sizeOf: BatchSize<T>): T[] {
  const size = Math.max(1, sizeOf(waiting.values()));
  const batch: T[] = [];
  for (const [identity, item] of waiting) {
    if (batch.length === size) break;
    waiting.delete(identity);
    batch.push(item);
  }
  return batch;
}
