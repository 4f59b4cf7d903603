export interface Range {
  name: string;
  /** Seconds. */
  duration: number;
}

const HOUR_SECONDS = 3600;
const DAY_SECONDS = 24 * HOUR_SECONDS;

export const RANGES: readonly Range[] = [
  { name: '1 hour', duration: HOUR_SECONDS },
  { name: '6 hours', duration: 6 * HOUR_SECONDS },
  { name: '1 day', duration: DAY_SECONDS },
  { name: '7 days', duration: 7 * DAY_SECONDS },
  { name: '30 days', duration: 30 * DAY_SECONDS },
  { name: '90 days', duration: 90 * DAY_SECONDS },
];

const DEFAULT = RANGES[2]!;

/** The range of an address; a day if it names none. */
export const rangeOf = (given: string | undefined): Range => RANGES.find(({ name }) => name === given) ?? DEFAULT;
