import type { NewRun, WorkflowsRole } from '../broker/workflows.js';
import { Coalescer, type Collected, type Waiter } from '../enqueue/coalescer.js';
import type { Relay } from '../links/relay.js';

/** The size of one call, which holds Redis while it runs. */
const MAX_STEPS = 1_000;
const MAX_BYTES = 1 << 20;

type Status = 'started' | 'exists';

/** A run, and the bytes of its payloads. */
interface SizedRun {
  readonly run: NewRun;
  readonly bytes: number;
}

/** Runs for one queue that are sent together. */
class Runs implements Collected<SizedRun, Status> {
  readonly requests: SizedRun[] = [];
  readonly owners: Waiter<Status>[] = [];
  private steps = 0;
  bytes = 0;

  hasRoomFor({ run, bytes }: SizedRun): boolean {
    return this.steps + run.steps.length <= MAX_STEPS && this.bytes + bytes <= MAX_BYTES;
  }

  get isFull(): boolean {
    return this.steps >= MAX_STEPS || this.bytes >= MAX_BYTES;
  }

  add(request: SizedRun, owner: Waiter<Status>): void {
    this.requests.push(request);
    this.owners.push(owner);
    this.steps += request.run.steps.length;
    this.bytes += request.bytes;
  }
}

/** Sends the starts that come close together as one call per queue. */
export class Starter {
  private readonly coalescer: Coalescer<SizedRun, Status>;

  constructor(workflows: Pick<WorkflowsRole, 'start'>, relay: Relay) {
    const call = async (queue: string, requests: readonly SizedRun[]): Promise<readonly Status[]> => {
      const { statuses, ...caused } = await workflows.start(
        queue,
        requests.map(({ run }) => run),
      );
      relay.carry(caused);
      return statuses;
    };
    this.coalescer = new Coalescer(call, () => new Runs());
  }

  start(queue: string, run: NewRun): Promise<Status> {
    return this.coalescer.add(queue, { run, bytes: sizeOf(run) });
  }

  /** Sends everything, and resolves when every call has succeeded or failed. */
  close(): Promise<void> {
    return this.coalescer.close();
  }
}

const sizeOf = ({ steps }: NewRun): number =>
  steps.reduce((sum, { request }) => sum + request.message.payload.length, 0);
