/** With many queues a pass takes some of them: on average so many milliseconds for each. */
const PACE_MS = 40;
/** Between two passes, then. */
const PASS_MS = 400;
/** The first time they are looked at, it takes so many times as many. */
const FIRST_LAP_FACTOR = 10;

/** Has a loop look at its queues in turns where there are so many that all at once would be a burst. */
export class Turns {
  /** How often all queues had their turn. */
  laps = 0;
  private next = 0;

  /** @param interval of a loop that looks at all its queues in each pass, in milliseconds */
  constructor(private readonly interval: number) {}

  /** Whether each pass looks at all of them. */
  areAll(queues: readonly string[]): boolean {
    return queues.length * PACE_MS <= this.interval;
  }

  /** The queues of this pass, and the milliseconds until the next. */
  take(queues: readonly string[]): { readonly queues: readonly string[]; readonly delay: number } {
    if (this.areAll(queues)) {
      this.laps += 1;
      return { queues, delay: this.interval };
    }
    const first = this.next < queues.length ? this.next : 0;
    const last = first + (PASS_MS / PACE_MS) * (this.laps === 0 ? FIRST_LAP_FACTOR : 1);
    this.next = last < queues.length ? last : 0;
    if (this.next === 0) this.laps += 1;
    return { queues: queues.slice(first, last), delay: PASS_MS };
  }
}
