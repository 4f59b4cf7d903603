/** When something is to happen again and again. */
export interface Schedule {
  /**
   * The first moment later than `after`, both in milliseconds since the epoch; a whole second. `undefined`: never again, or not
   * within the five years that robfig/cron looks ahead.
   */
  next(after: number): number | undefined;
}
