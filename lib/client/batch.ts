import type { EnqueueRequest } from '../broker/broker.js';

/** How much goes into one call to the broker: it holds Redis while it runs. */
export interface BatchLimits {
  readonly tasks: number;
  /** Of payloads. A single larger task travels alone. */
  readonly bytes: number;
}

/** Requests for one queue that travel together, each with whom its status concerns. */
export class Batch<Owner> {
  readonly requests: EnqueueRequest[] = [];
  readonly owners: Owner[] = [];
  private bytes = 0;

  constructor(private readonly limits: BatchLimits) {}

  hasRoomFor(request: EnqueueRequest): boolean {
    const { tasks, bytes } = this.limits;
    return this.requests.length < tasks && this.bytes + request.message.payload.length <= bytes;
  }

  add(request: EnqueueRequest, owner: Owner): void {
    this.requests.push(request);
    this.owners.push(owner);
    this.bytes += request.message.payload.length;
  }
}
