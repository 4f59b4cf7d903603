export interface Range {
  name: string;
  /** Seconds. */
  duration: number;
}

const HOUR = 3600;
const DAY = 24 * HOUR;

export const RANGES: readonly Range[] = [
  { name: '1 hour', duration: HOUR },
  { name: '6 hours', duration: 6 * HOUR },
  { name: '1 day', duration: DAY },
  { name: '7 days', duration: 7 * DAY },
  { name: '30 days', duration: 30 * DAY },
  { name: '90 days', duration: 90 * DAY },
];

const DEFAULT = RANGES[2]!;

/** The range of an address; a day where it names none. */
export const rangeOf = (given: string | undefined): Range => RANGES.find(({ name }) => name === given) ?? DEFAULT;
