import type { Clock, ClockTimer } from '../../clock.js';
import { DeadlineExceededError } from '../../errors.js';
import type { ActiveTask } from './active-task.js';
import type { Attempts } from './attempts.js';

/**
 * One timer for the deadlines of all running tasks. Nearly every task ends long before its
 * deadline. So watching one costs a comparison, and ending one costs nothing. All are checked when
 * the earliest known deadline passes.
 */
export class Deadlines {
  private next = Infinity;
  private timer: ClockTimer | undefined;

  constructor(
    private readonly clock: Clock,
    private readonly attempts: Pick<Attempts, 'held' | 'fail'>,
  ) {}

  watch(task: ActiveTask): void {
    if (task.deadlineAt < this.next) this.wakeAt(task.deadlineAt);
  }

  close(): void {
    this.timer?.cancel();
    this.next = Infinity;
  }

  private wakeAt(time: number): void {
    this.next = time;
    this.timer?.cancel();
    this.timer = this.clock.after(time - this.clock.now(), () => this.check());
  }

  private check(): void {
    const now = this.clock.now();
    let next = Infinity;
    this.next = Infinity;
    for (const task of Array.from(this.attempts.held())) {
      if (task.verdict) continue;
      if (task.deadlineAt <= now) this.attempts.fail(task, new DeadlineExceededError());
      else if (task.deadlineAt < next) next = task.deadlineAt;
    }
    if (next < this.next) this.wakeAt(next);
  }
}
