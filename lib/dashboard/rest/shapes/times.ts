/** Go's zero time, as its JSON encoder writes it. */
const ZERO_TIME = '0001-01-01T00:00:00Z';

/** Without the zeroes at the end of a fraction, as Go writes it. */
const trim = (date: Date): string => date.toISOString().replace(/\.?0+Z$/, 'Z');

/** RFC 3339 with a fraction where there is one; the zero time where there is none. */
export const goTime = (date: Date | undefined): string => (date ? trim(date) : ZERO_TIME);

/** RFC 3339 in whole seconds; empty where there is none. */
export const secondsOrEmpty = (date: Date | undefined): string =>
  date ? date.toISOString().replace(/\.\d+Z$/, 'Z') : '';

export const timeOrNull = (date: Date | undefined): string | null => (date ? trim(date) : null);
