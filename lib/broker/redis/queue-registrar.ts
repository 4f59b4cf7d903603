import type { Clock } from '../../clock.js';
import type { RedisConnections } from './connection/connections.js';

/**
 * How long a queue counts as listed. Redis may lose the list (a flush, a failover), and others may
 * edit it.
 */
const REGISTRATION_TTL_MS = 60_000;

interface Registration {
  /** The last success, in milliseconds since the epoch. */
  at: number | undefined;
  underWay: Promise<void> | undefined;
}

/**
 * Keeps queues listed in asynq's set of queues. The set is in another slot than the queues, so it
 * is written separately.
 */
export class QueueRegistrar {
  private readonly queues = new Map<string, Registration>();

  /** @param list goes by the connections for `produce` */
  constructor(
    connections: RedisConnections,
    private readonly clock: Clock,
    private readonly list: (queue: string) => Promise<unknown>,
  ) {
    connections.onStateChange((purpose, state) => {
      if (purpose === 'produce' && state === 'ready') this.listAgain();
    });
  }

  /**
   * Lists the queue when that is due. Returns a promise while this process has never listed the
   * queue. Await it before enqueuing, so that a failure leaves no tasks that nobody sees; later
   * calls need not wait.
   */
  register(queue: string): Promise<void> | undefined {
    let known = this.queues.get(queue);
    if (!known) this.queues.set(queue, (known = { at: undefined, underWay: undefined }));
    if (!known.underWay && !this.isListed(known)) known.underWay = this.send(queue, known);
    if (known.at === undefined) return known.underWay;
    known.underWay?.catch(() => undefined);
    return undefined;
  }

  /** The queue was removed from the list: the next call lists it at once. */
  forget(queue: string): void {
    this.queues.delete(queue);
  }

  /**
   * The connection is back, to a Redis that may have lost the list: what was listed of late is listed again at once, as the next
   * call for it may have passed already, or never come.
   */
  private listAgain(): void {
    for (const [queue, known] of this.queues) {
      if (known.underWay || !this.isListed(known)) continue;
      known.at = undefined;
      known.underWay = this.send(queue, known);
      known.underWay.catch(() => undefined);
    }
  }

  private isListed({ at }: Registration): boolean {
    if (at === undefined) return false;
    const age = this.clock.now() - at;
    return age >= 0 && age < REGISTRATION_TTL_MS;
  }

  private async send(queue: string, registration: Registration): Promise<void> {
    const at = this.clock.now();
    try {
      await this.list(queue);
      registration.at = at;
    } finally {
      registration.underWay = undefined;
    }
  }
}
