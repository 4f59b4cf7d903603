import type { Clock, ClockTimer } from '../clock.js';
import type { Job } from './job.js';

/** The longest wait for a timer, in milliseconds: timers stand still while a machine sleeps, and clocks are set. */
const LONGEST_WAIT = 60_000;

/** Runs jobs when they are due, each independent of the others. */
export class Ticker {
  private readonly jobs = new Set<Job>();
  private timer: ClockTimer | undefined;
  private running = false;
  private rearming = false;

  constructor(private readonly clock: Clock) {}

  add(job: Job): void {
    this.jobs.add(job);
    this.rearm();
  }

  remove(job: Job): void {
    this.jobs.delete(job);
  }

  start(): void {
    this.running = true;
    this.rearm();
  }

  /** No pass begins after this. Resolves when those under way are over. */
  async stop(): Promise<void> {
    this.running = false;
    this.timer?.cancel();
    await Promise.all([...this.jobs].filter(({ busy }) => busy).map((job) => job.run()));
  }

  /** When the next job is due, in milliseconds since the epoch; `Infinity` = none is. */
  nextDue(): number {
    let next = Infinity;
    for (const { busy, dueAt } of this.jobs) if (!busy && dueAt < next) next = dueAt;
    return next;
  }

  /** Runs what is due, until nothing is. */
  async runDue(): Promise<void> {
    for (let due = this.due(); due.length > 0; due = this.due()) await Promise.all(due.map((job) => job.run()));
  }

  /** Looks again when the next job is due. Asked for by many at once, it is done once. */
  rearm(): void {
    if (!this.running || this.rearming) return;
    this.rearming = true;
    queueMicrotask(() => {
      this.rearming = false;
      if (this.running) this.arm();
    });
  }

  private due(): Job[] {
    const now = this.clock.now();
    return [...this.jobs].filter(({ busy, dueAt }) => !busy && dueAt <= now);
  }

  private arm(): void {
    this.timer?.cancel();
    const wait = Math.min(Math.max(this.nextDue() - this.clock.now(), 0), LONGEST_WAIT);
    this.timer = this.clock.after(wait, () => {
      for (const job of this.due()) void job.run().then(() => this.rearm());
      this.rearm();
    });
  }
}
