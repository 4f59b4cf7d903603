import { BrokerUnavailableError } from '../errors.js';

/** Payloads of calls under way together. Beyond some megabytes more calls do not make Redis faster. */
export const MAX_BYTES_IN_FLIGHT = 16 << 20;
/** As long as a call itself waits for Redis. */
const PATIENCE_MS = 5_000;

interface Waiting {
  readonly bytes: number;
  readonly since: number;
  readonly start: () => void;
  readonly refuse: (error: BrokerUnavailableError) => void;
}

/**
 * Bounds the payloads of the calls of a client that are under way: a call that is sent holds its bytes several times, encoded and in
 * the buffers of the socket. Further calls wait in line, and start in their order.
 */
export class Flight {
  private bytes = 0;
  private readonly line = new Set<Waiting>();

  constructor(private readonly maxBytes = MAX_BYTES_IN_FLIGHT) {}

  /**
   * Await a returned promise before the call; then `leave` must follow. One call may start whatever its size.
   *
   * @throws BrokerUnavailableError: it has waited as long as a call waits for Redis, and one before it has waited in vain. Then without `leave`
   */
  enter(bytes: number): Promise<void> | undefined {
    if (this.line.size === 0 && this.hasRoomFor(bytes)) {
      this.bytes += bytes;
      return undefined;
    }
    return new Promise((start, refuse) => this.line.add({ bytes, since: performance.now(), start, refuse }));
  }

  /** @param error of a call that has failed */
  leave(bytes: number, error?: unknown): void {
    this.bytes -= bytes;
    if (this.line.size === 0) return;
    if (error instanceof BrokerUnavailableError) this.refuse(error);
    for (const waiting of this.line) {
      if (!this.hasRoomFor(waiting.bytes)) return;
      this.line.delete(waiting);
      this.bytes += waiting.bytes;
      waiting.start();
    }
  }

  private hasRoomFor(bytes: number): boolean {
    return this.bytes === 0 || this.bytes + bytes <= this.maxBytes;
  }

  private refuse(error: BrokerUnavailableError): void {
    const patient = performance.now() - PATIENCE_MS;
    for (const waiting of this.line) {
      if (waiting.since > patient) return;
      this.line.delete(waiting);
      waiting.refuse(error);
    }
  }
}
