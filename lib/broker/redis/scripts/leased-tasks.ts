import { UndecodableMessageError } from '../../../errors.js';
import { decodeTaskMessage } from '../../../wire/codec.js';
import type { DamagedTask, LeasedTask } from '../../broker.js';
import { readNanoseconds } from './arguments.js';
import type { LeasedLinks } from './leased-links.js';
import type { PackedReader } from './packed-reader.js';
import { TaskLease } from './task-lease.js';

/** What was asked for of each task beside its message: see ExchangeRequest. */
export interface AlsoRead {
  readonly since: boolean;
  readonly bare: boolean;
}

const NOTHING: AlsoRead = { since: false, bare: false };

/** Divides what a script has leased into tasks and damaged tasks. */
export class LeasedTasks {
  readonly tasks: LeasedTask[] = [];
  readonly damaged: DamagedTask[] = [];

  constructor(
    private readonly queue: string,
    private readonly links?: LeasedLinks,
  ) {}

  /**
   * @param expiresAt Unix seconds
   * @param reader at the message, with what was asked for beside it behind it
   */
  add(id: string, expiresAt: number, reader: PackedReader, also = NOTHING): void {
    const { bytes } = reader;
    const start = reader.enter();
    const end = reader.offset;
    const pendingSince = also.since ? readNanoseconds(reader.text()) : undefined;
    const bare = also.bare ? reader.count() === 1 : undefined;
    const links = this.links?.next(id);
    const lease = new TaskLease(this.queue, id, expiresAt, this.links ? this.links.step : null);
    try {
      const message = decodeTaskMessage(bytes, start, end, id);
      if (message.id !== id) throw foreignMessage(id, message.id);
      this.tasks.push({ lease, message, pendingSince, bare, links }); // objects of one shape
    } catch (error) {
      this.damaged.push({ lease, raw: bytes.subarray(start, end), error: error as Error });
    }
  }
}

/** Also for zero bytes, which decode as a message with empty fields. */
const foreignMessage = (id: string, other: string): UndecodableMessageError =>
  new UndecodableMessageError(
    `the message of task "${id}" is of a task "${other}"; see what else writes to the hash of the task`,
  );
