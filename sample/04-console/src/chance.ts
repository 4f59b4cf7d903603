/** True in the given percentage of calls. */
export const chance = (percent: number): boolean => Math.random() * 100 < percent;

/** An integer from 0 to `end` - 1. */
export const below = (end: number): number => Math.floor(Math.random() * end);

export const oneOf = <T>(values: readonly T[]): T => values[below(values.length)]!;
