/** The longest pause after failures in a row, in milliseconds. */
const LONGEST_BACKOFF = 5_000;

/** Something the scheduler does when its time has come, one pass at a time. */
export abstract class Job {
  /** When the next pass is due, in milliseconds since the epoch; `Infinity` = never. */
  dueAt = 0;
  private current: Promise<void> | undefined;
  private failures = 0;

  /** Does the work and answers when the next pass is due. */
  protected abstract work(): Promise<number>;

  protected abstract onError(error: unknown): void;

  protected abstract now(): number;

  get busy(): boolean {
    return this.current !== undefined;
  }

  /** Runs a pass, or answers the one under way. Never rejects: a failure is reported, and the pass repeated after a pause. */
  run(): Promise<void> {
    this.current ??= this.pass().finally(() => (this.current = undefined));
    return this.current;
  }

  private async pass(): Promise<void> {
    try {
      this.dueAt = await this.work();
      this.failures = 0;
    } catch (error) {
      const pause = Math.min(LONGEST_BACKOFF, 100 * 2 ** this.failures++);
      this.dueAt = this.now() + pause / 2 + (pause / 2) * Math.random();
      this.onError(error);
    }
  }
}
