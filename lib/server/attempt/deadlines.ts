import type { Clock, ClockTimer } from '../../clock.js';
import type { ActiveTask } from './active-task.js';

/**
 * One timer for the deadlines of all running tasks. Nearly every task ends long before its deadline, so adding one costs a
 * comparison and ending one nothing; only when the earliest known deadline passes are the running tasks looked through.
 */
export class Deadlines {
  private next = Infinity;
  private timer: ClockTimer | undefined;

  constructor(
    private readonly clock: Clock,
    private readonly running: () => Iterable<ActiveTask>,
    private readonly onPassed: (task: ActiveTask) => void,
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
    for (const task of [...this.running()]) {
      if (task.verdict) continue;
      if (task.deadlineAt <= now) this.onPassed(task);
      else if (task.deadlineAt < next) next = task.deadlineAt;
    }
    if (next < this.next) this.wakeAt(next);
  }
}
