/** True so often out of a hundred times. */
export const chance = (percent: number): boolean => Math.random() * 100 < percent;

/** A whole number from 0 up to, not including, `end`. */
export const below = (end: number): number => Math.floor(Math.random() * end);

export const oneOf = <T>(values: readonly T[]): T => values[below(values.length)]!;
