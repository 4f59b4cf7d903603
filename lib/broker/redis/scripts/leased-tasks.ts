import { UndecodableMessageError } from '../../../errors.js';
import { decodeTaskMessage } from '../../../wire/codec.js';
import type { DamagedTask, Lease, LeasedTask } from '../../broker.js';
import type { LeasedLinks } from './leased-links.js';

/** Divides what a script has leased into tasks and damaged tasks. */
export class LeasedTasks {
  readonly tasks: LeasedTask[] = [];
  readonly damaged: DamagedTask[] = [];

  constructor(
    private readonly queue: string,
    private readonly links?: LeasedLinks,
  ) {}

  /** @param expiresAt Unix seconds; @param pendingSince milliseconds since the epoch, when asked for and known */
  add(id: string, expiresAt: number, raw: Buffer, pendingSince?: number): void {
    const lease: Lease = { queue: this.queue, id, expiresAt, renewing: undefined };
    const links = this.links?.next(id);
    try {
      const message = decodeTaskMessage(raw);
      if (message.id !== id) throw foreignMessage(id, message.id);
      this.tasks.push({ lease, message, pendingSince, links }); // objects of one shape
    } catch (error) {
      this.damaged.push({ lease, raw, error: error as Error });
    }
  }
}

/** Also for zero bytes, which decode as a message with empty fields. */
const foreignMessage = (id: string, other: string): UndecodableMessageError =>
  new UndecodableMessageError(
    `the message of task "${id}" is of a task "${other}"; see what else writes to the hash of the task`,
  );
