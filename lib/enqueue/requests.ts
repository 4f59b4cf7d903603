import type { EnqueueRequest } from '../broker/broker.js';

/** The size of one call to the broker, which blocks Redis while it runs. */
export interface CallLimits {
  readonly tasks: number;
  /** Of all payloads together. A larger task is sent alone. */
  readonly bytes: number;
}

/** One call takes Redis a few microseconds per task: one with 500 tasks blocks it for some 2 ms. */
export const CALL_LIMITS: CallLimits = { tasks: 500, bytes: 1 << 20 };

/**
 * Of single tasks that come together. Fifty share the costs of a call well enough, and Redis works on them while this process prepares
 * the next, and resumes the callers of those before.
 */
export const SINGLES_LIMITS: CallLimits = { tasks: 50, bytes: CALL_LIMITS.bytes };

/** Requests for one queue that are sent together, each with the owner of its status. */
export class Requests<Owner> {
  readonly requests: EnqueueRequest[] = [];
  readonly owners: Owner[] = [];
  bytes = 0;

  constructor(private readonly limits: CallLimits) {}

  hasRoomFor(request: EnqueueRequest): boolean {
    const { tasks, bytes } = this.limits;
    return this.requests.length < tasks && this.bytes + request.message.payload.length <= bytes;
  }

  get isFull(): boolean {
    const { tasks, bytes } = this.limits;
    return this.requests.length >= tasks || this.bytes >= bytes;
  }

  add(request: EnqueueRequest, owner: Owner): void {
    this.requests.push(request);
    this.owners.push(owner);
    this.bytes += request.message.payload.length;
  }
}
