import { setImmediate } from 'node:timers'; // the real one, also where a test fakes the global
import type { Clock, ClockTimer } from '../clock.js';

/** Timers that fire in one turn of the event loop: some milliseconds of work. */
const TIMERS_PER_TURN = 25;

interface PacedTimer {
  readonly due: number;
  /** `undefined` once it is cancelled. */
  callback: (() => void) | undefined;
}

/**
 * A clock for thousands of timers, which may be due at once: all of them take one timer of the clock
 * below, and those due together fire in several turns of the event loop. The first ones fire at once.
 */
export class PacedClock implements Clock {
  private readonly heap: PacedTimer[] = [];
  private alarm: ClockTimer | undefined;
  /** When the alarm goes off, on the clock of `elapsed`; while timers wait for their turn, there is none. */
  private alarmAt = Infinity;
  private inTurns = false;

  constructor(private readonly clock: Clock) {}

  now(): number {
    return this.clock.now();
  }

  elapsed(): number {
    return this.clock.elapsed();
  }

  after(delay: number, callback: () => void): ClockTimer {
    const timer: PacedTimer = { due: this.elapsed() + Math.max(delay, 0), callback };
    if (delay !== Infinity) {
      push(this.heap, timer);
      this.arm();
    }
    return { cancel: () => (timer.callback = undefined) };
  }

  private arm(): void {
    const due = this.heap[0]?.due ?? Infinity;
    if (this.inTurns || due >= this.alarmAt) return;
    this.alarm?.cancel();
    this.alarmAt = due;
    this.alarm = this.clock.after(due - this.elapsed(), () => {
      this.alarmAt = Infinity;
      this.fire();
    });
  }

  private fire(): void {
    const now = this.elapsed();
    for (let fired = 0; this.heap.length > 0 && this.heap[0]!.due <= now;) {
      if (fired === TIMERS_PER_TURN) {
        this.inTurns = true;
        setImmediate(() => this.fire());
        return;
      }
      const { callback } = pop(this.heap);
      if (!callback) continue;
      fired++;
      callback();
    }
    this.inTurns = false;
    this.arm();
  }
}

/** Adds to a binary heap whose first timer is the one that is due next. */
function push(heap: PacedTimer[], timer: PacedTimer): void {
  let at = heap.push(timer) - 1;
  while (at > 0) {
    const parent = (at - 1) >> 1;
    if (heap[parent]!.due <= timer.due) break;
    heap[at] = heap[parent]!;
    at = parent;
  }
  heap[at] = timer;
}

/** Takes the first of a heap that has one. */
function pop(heap: PacedTimer[]): PacedTimer {
  const first = heap[0]!;
  const last = heap.pop()!;
  if (heap.length === 0) return first;
  let at = 0;
  for (let child = 1; child < heap.length; child = 2 * at + 1) {
    if (child + 1 < heap.length && heap[child + 1]!.due < heap[child]!.due) child++;
    if (heap[child]!.due >= last.due) break;
    heap[at] = heap[child]!;
    at = child;
  }
  heap[at] = last;
  return first;
}
