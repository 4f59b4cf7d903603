/** Go's zero time, as its JSON encoder writes it. */
const ZERO_TIME = '0001-01-01T00:00:00Z';

/** Without trailing zeroes in the fraction, as Go writes it. */
const trim = (date: Date): string => date.toISOString().replace(/\.?0+Z$/, 'Z');

/** RFC 3339 with its fraction, or Go's zero time. */
export const goTime = (date: Date | undefined): string => (date ? trim(date) : ZERO_TIME);

/** RFC 3339 in whole seconds, or empty. */
export const secondsOrEmpty = (date: Date | undefined): string =>
  date ? date.toISOString().replace(/\.\d+Z$/, 'Z') : '';

export const timeOrNull = (date: Date | undefined): string | null => (date ? trim(date) : null);
