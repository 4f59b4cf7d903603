/** The times of something that repeats. */
export interface Schedule {
  /**
   * The first time after `after`, both in milliseconds since the epoch; a whole second.
   * `undefined`: never again, or not within the five years that robfig/cron looks ahead.
   */
  next(after: number): number | undefined;
}
