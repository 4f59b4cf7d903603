import type { EnqueueRequest } from '../broker/broker.js';

/** The size of one call to the broker, which blocks Redis while it runs. */
export interface BatchLimits {
  readonly tasks: number;
  /** Of all payloads together. A larger task is sent alone. */
  readonly bytes: number;
}

/** Requests for one queue that are sent together, each with the owner of its status. */
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
