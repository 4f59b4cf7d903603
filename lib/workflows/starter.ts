import { nextTick } from 'node:process';
import { setImmediate } from 'node:timers'; // the real one, also where a test fakes the global
import type { NewRun, WorkflowsRole } from '../broker/workflows.js';
import type { Relay } from '../links/relay.js';

/** The size of one call, which holds Redis while it runs. */
const MAX_STEPS = 1_000;
const MAX_BYTES = 1 << 20;

type Status = 'started' | 'exists';

interface Waiter {
  resolve(status: Status): void;
  reject(error: unknown): void;
}

/** Runs for one queue that are sent together. */
interface Collected {
  readonly runs: NewRun[];
  readonly waiters: Waiter[];
  steps: number;
  bytes: number;
}

/** Sends the starts that come close together as one call per queue, as the client does for tasks (see Coalescer). */
export class Starter {
  private readonly open = new Map<string, Collected>();
  private readonly sending = new Set<Promise<void>>();

  constructor(
    private readonly workflows: Pick<WorkflowsRole, 'start'>,
    private readonly relay: Relay,
  ) {}

  start(queue: string, run: NewRun): Promise<Status> {
    return new Promise((resolve, reject) => {
      const bytes = sizeOf(run);
      let collected = this.open.get(queue);
      if (collected && !hasRoomFor(collected, run, bytes)) {
        this.flush(queue);
        collected = undefined;
      }
      if (!collected) {
        if (this.open.size === 0) this.scheduleFlush();
        this.open.set(queue, (collected = { runs: [], waiters: [], steps: 0, bytes: 0 }));
      }
      collected.runs.push(run);
      collected.waiters.push({ resolve, reject });
      collected.steps += run.steps.length;
      collected.bytes += bytes;
    });
  }

  /** Sends everything, and resolves when every call has succeeded or failed. */
  async close(): Promise<void> {
    this.flushAll();
    await Promise.all(this.sending);
  }

  private scheduleFlush(): void {
    if (this.sending.size === 0) nextTick(this.flushAll);
    else setImmediate(this.flushAll);
  }

  private readonly flushAll = (): void => {
    for (const queue of this.open.keys()) this.flush(queue);
  };

  private flush(queue: string): void {
    const collected = this.open.get(queue)!;
    this.open.delete(queue);
    const sent = this.send(queue, collected);
    this.sending.add(sent);
    void sent.then(() => this.sending.delete(sent));
  }

  /** Never rejects: the error of a call goes to the runs in it. */
  private async send(queue: string, { runs, waiters }: Collected): Promise<void> {
    try {
      const { statuses, parcels } = await this.workflows.start(queue, runs);
      this.relay.carry(parcels);
      for (const [index, { resolve }] of waiters.entries()) resolve(statuses[index]!);
    } catch (error) {
      for (const { reject } of waiters) reject(error);
    }
  }
}

const sizeOf = ({ steps }: NewRun): number =>
  steps.reduce((sum, { request }) => sum + request.message.payload.length, 0);

const hasRoomFor = (collected: Collected, { steps }: NewRun, bytes: number): boolean =>
  collected.steps + steps.length <= MAX_STEPS && collected.bytes + bytes <= MAX_BYTES;
