/**
 * Go's delays are an int64 of nanoseconds: about 292 years, which the formula exceeds at 310
 * failures.
 */
const MAX_DELAY_SECONDS = 9_223_372_036;

/**
 * asynq's default: `n⁴ + 15 + r × (n + 1)` seconds, `r` a random whole number from 0 to 29, `n` the
 * failures before this one (n = 0: 15–44 s, 1: 16–74 s, 5: 640–814 s, 24: about 3.8 days).
 *
 * @param retried failures before this one
 * @param random returns a number from 0 (included) to 1 (excluded)
 * @returns milliseconds until the next attempt
 */
export function defaultRetryDelay(retried: number, random: () => number = Math.random): number {
  const seconds = retried ** 4 + 15 + Math.floor(random() * 30) * (retried + 1);
  return Math.min(seconds, MAX_DELAY_SECONDS) * 1000;
}
