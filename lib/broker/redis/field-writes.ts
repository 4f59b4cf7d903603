import { nextTick } from 'node:process';
import type { Keyspace } from '../../wire/keys.js';
import { MAX_CALL_BYTES } from '../call-size.js';
import type { Lease } from '../consumer.js';
import type { LeaseScores } from './lease-scores.js';
import type { Argument } from './scripts/script-command.js';
import type { Scripts } from './scripts/scripts.js';

/** Writes of one call. */
const WRITES_PER_CALL = 100;

interface Write {
  readonly lease: Lease;
  readonly field: string;
  readonly value: Buffer;
  readonly resolve: (written: boolean) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Stores fields of active tasks, each only while its lease is the caller's. The writes of one turn of the event loop to a queue are
 * one call: handlers that run side by side get the replies of their steps together, and so go on to the next ones together.
 */
export class FieldWrites {
  private readonly waiting = new Map<string, Write[]>();

  constructor(
    private readonly scripts: Scripts,
    private readonly keyspace: Keyspace,
    private readonly scores: LeaseScores,
  ) {}

  /** @returns false when the task is no longer the caller's, and nothing was written */
  write(lease: Lease, field: string, value: Buffer): Promise<boolean> {
    return new Promise((resolve, reject) => {
      const write: Write = { lease, field, value, resolve, reject };
      const list = this.waiting.get(lease.queue);
      if (list) return void list.push(write);
      this.waiting.set(lease.queue, [write]);
      nextTick(() => this.send(lease.queue));
    });
  }

  private send(queue: string): void {
    const writes = this.waiting.get(queue)!;
    this.waiting.delete(queue);
    for (let from = 0; from < writes.length;) {
      const to = endOfCall(writes, from);
      void this.call(queue, writes.slice(from, to));
      from = to;
    }
  }

  private async call(queue: string, writes: readonly Write[]): Promise<void> {
    const keys = this.keyspace.queue(queue);
    const scriptKeys = [keys.lease];
    const argv: Argument[] = [keys.taskPrefix];
    for (const { lease, field, value } of writes) {
      scriptKeys.push(keys.task(lease.id));
      argv.push(field, value);
    }
    argv.push(...this.scores.fences(writes.map(({ lease }) => lease)));
    try {
      const replies = (await this.scripts.run('consume', 'writeFields', scriptKeys, argv)) as (number | Buffer)[];
      for (let i = 0; i < writes.length; i++) {
        const reply = replies[i]!;
        if (typeof reply === 'number') writes[i]!.resolve(reply === 1);
        else void this.call(queue, [writes[i]!]); // alone it has an error of its own
      }
    } catch (error) {
      for (const { reject } of writes) reject(error);
    }
  }
}

/** Behind the last write that goes into a call with the one at `from`. */
function endOfCall(writes: readonly Write[], from: number): number {
  let bytes = writes[from]!.value.length;
  let to = from + 1;
  while (to < writes.length && to - from < WRITES_PER_CALL) {
    bytes += writes[to]!.value.length;
    if (bytes > MAX_CALL_BYTES) break;
    to += 1;
  }
  return to;
}
