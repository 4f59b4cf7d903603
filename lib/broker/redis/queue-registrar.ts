import type { Clock } from '../../clock.js';

/** How long a queue counts as listed, in milliseconds. Redis may lose the list (a flush, a failover), and others may edit it. */
const REGISTRATION_TTL_MS = 60_000;

interface Registration {
  /** Milliseconds since the epoch of the last success. */
  at: number | undefined;
  underWay: Promise<void> | undefined;
}

/** Keeps queues listed in asynq's set of queues, which is in another slot than the queues and so written separately. */
export class QueueRegistrar {
  private readonly queues = new Map<string, Registration>();

  constructor(
    private readonly clock: Clock,
    private readonly list: (queue: string) => Promise<unknown>,
  ) {}

  /**
   * Lists the queue when that is due. Answers a promise as long as this process has never listed the queue: it is to be
   * awaited before anything is enqueued, so that a failure leaves no tasks nobody can see. Later on nobody has to wait.
   */
  register(queue: string): Promise<void> | undefined {
    let known = this.queues.get(queue);
    if (!known) this.queues.set(queue, (known = { at: undefined, underWay: undefined }));
    if (!known.underWay && !this.isListed(known)) known.underWay = this.send(queue, known);
    if (known.at === undefined) return known.underWay;
    known.underWay?.catch(() => undefined);
    return undefined;
  }

  /** The queue was taken off the list: the next registration is made at once. */
  forget(queue: string): void {
    this.queues.delete(queue);
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
