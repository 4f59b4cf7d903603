import type { Lease } from '../consumer.js';

/*
 * What the event loop and the thread of a lease guard share. Numbers are 64-bit floats or 32-bit integers of the machine.
 *
 *   head    i32 beats, i32 news (the thread has written), i32 slots in use at most; f64 at 16: how far the clock is ahead of the system's, ms
 *   slot    i32 0 empty, 1 held · i32 the number of the queue · i32 the length of the id · f64 at 16: deadline, ms · f64 the score that was
 *           written last, and that of an extension under way · f64 of the thread: the last score that was confirmed, two that were sent ·
 *           the id in UTF-8
 */
export const LAYOUT = {
  head: 64,
  slot: 192,
  beats: 0,
  news: 1,
  inUse: 2,
  ahead: 2,
  state: 0,
  queue: 1,
  length: 2,
  deadline: 2,
  expiresAt: 3,
  renewing: 4,
  confirmed: 5,
  sent: 6,
  sentBefore: 7,
  id: 64,
  mostIdBytes: 128,
} as const;

const { head, slot: slotBytes, mostIdBytes } = LAYOUT;

/** The leases that a process holds, in memory that a thread reads. Leases with ids that are too long, or beyond the capacity, are not in it. */
export class LeaseBoard {
  readonly memory: SharedArrayBuffer;
  private readonly words: Int32Array;
  private readonly numbers: Float64Array;
  private readonly bytes: Buffer;
  private readonly free: number[] = [];
  private readonly leases: (Lease | undefined)[] = [];

  constructor(private readonly capacity: number) {
    this.memory = new SharedArrayBuffer(head + capacity * slotBytes);
    this.words = new Int32Array(this.memory);
    this.numbers = new Float64Array(this.memory);
    this.bytes = Buffer.from(this.memory);
  }

  /** @param queue the number by which the thread knows it */
  hold(lease: Lease, queue: number, deadline: number): void {
    const slot = this.free.pop() ?? this.leases.length;
    if (slot >= this.capacity) return;
    const { words, numbers } = this;
    const start = head + slot * slotBytes;
    const length = lease.id.length * 3 <= mostIdBytes ? this.write(lease.id, start) : this.writeLong(lease.id, start);
    if (length === 0) return void this.free.push(slot);
    const number = start / 8;
    words[start / 4 + LAYOUT.queue] = queue;
    words[start / 4 + LAYOUT.length] = length;
    numbers[number + LAYOUT.deadline] = deadline;
    this.leases[slot] = lease;
    lease.slot = slot;
    this.note(lease);
    numbers[number + LAYOUT.confirmed] = 0;
    numbers[number + LAYOUT.sent] = 0;
    numbers[number + LAYOUT.sentBefore] = 0;
    words[start / 4 + LAYOUT.state] = 1;
    if (slot >= words[LAYOUT.inUse]!) words[LAYOUT.inUse] = slot + 1;
  }

  release(lease: Lease): void {
    const { slot } = lease;
    if (slot === undefined || this.leases[slot] !== lease) return;
    this.words[(head + slot * slotBytes) / 4 + LAYOUT.state] = 0;
    lease.slot = undefined;
    this.leases[slot] = undefined;
    this.free.push(slot);
  }

  /** The scores of the lease have changed here. What the thread has written stays: it may have been written this moment. */
  note({ slot, expiresAt, renewing }: Lease): void {
    if (slot === undefined) return;
    const number = (head + slot * slotBytes) / 8;
    this.numbers[number + LAYOUT.expiresAt] = expiresAt;
    this.numbers[number + LAYOUT.renewing] = renewing ?? 0;
  }

  /** @param ahead how far the clock of the leases is ahead of the system's, in milliseconds */
  beat(ahead: number): void {
    this.numbers[LAYOUT.ahead] = ahead;
    Atomics.add(this.words, LAYOUT.beats, 1);
  }

  /** Whether the thread has written since `takeNews`. */
  get hasNews(): boolean {
    return this.words[LAYOUT.news] !== 0;
  }

  /** The leases that the thread has extended: the score that was confirmed last, 0 when none was, and those that may have been written. */
  takeNews(): [lease: Lease, confirmed: number, sent: number[]][] {
    Atomics.store(this.words, LAYOUT.news, 0);
    return this.leases.flatMap((lease, slot) => {
      const number = (head + slot * slotBytes) / 8;
      const { numbers } = this;
      const confirmed = numbers[number + LAYOUT.confirmed]!;
      const sent = [numbers[number + LAYOUT.sent]!, numbers[number + LAYOUT.sentBefore]!].filter((score) => score > 0);
      return lease && sent.length > 0 ? [[lease, confirmed, sent]] : [];
    });
  }

  private write(id: string, start: number): number {
    return this.bytes.write(id, start + LAYOUT.id, mostIdBytes);
  }

  private writeLong(id: string, start: number): number {
    return Buffer.byteLength(id) > mostIdBytes ? 0 : this.write(id, start);
  }
}
