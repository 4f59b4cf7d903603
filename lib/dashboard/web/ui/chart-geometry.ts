/** The coordinates of a chart, stretched to the width of its card. */
export const WIDTH = 600;
export const HEIGHT = 120;

export interface Scale {
  from: number;
  to: number;
  top: number;
}

const NICE = [1, 2, 2.5, 5, 10];
/** Round numbers of seconds, up to a day. */
const NICE_SECONDS = [60, 120, 300, 600, 900, 1800, 3600, 7200, 14_400, 21_600, 43_200, 86_400];

/** The same for milliseconds. */
export function niceTime(milliseconds: number): number {
  const seconds = milliseconds / 1000;
  if (seconds <= 30) return niceTop(milliseconds);
  const top = NICE_SECONDS.find((nice) => nice >= seconds);
  return (top ?? niceTop(seconds / 86_400) * 86_400) * 1000;
}

/** The next round number: the end of the axis. */
export function niceTop(value: number): number {
  if (value <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  const step = NICE.find((nice) => nice * power >= value * 0.999) ?? 10;
  return step * power;
}

export const x = (time: number, { from, to }: Scale): number => ((time - from) / Math.max(1, to - from)) * WIDTH;
export const y = (value: number, { top }: Scale): number => HEIGHT - (Math.min(value, top) / top) * HEIGHT;

const at = (time: number, value: number, scale: Scale): string =>
  `${x(time, scale).toFixed(1)} ${y(value, scale).toFixed(1)}`;

/** The parts of a line between its gaps. */
export function runs(times: readonly number[], values: readonly (number | undefined)[]): [number, number][][] {
  const all: [number, number][][] = [];
  let run: [number, number][] = [];
  for (const [index, value] of values.entries()) {
    if (value === undefined) {
      if (run.length > 0) all.push(run);
      run = [];
    } else run.push([times[index] as number, value]);
  }
  if (run.length > 0) all.push(run);
  return all;
}

export const linePath = (run: readonly [number, number][], scale: Scale): string =>
  run.map(([time, value], index) => `${index === 0 ? 'M' : 'L'}${at(time, value, scale)}`).join('');

export const areaPath = (run: readonly [number, number][], scale: Scale): string => {
  const first = run[0];
  const last = run.at(-1);
  if (!first || !last) return '';
  return `${linePath(run, scale)}L${x(last[0], scale).toFixed(1)} ${HEIGHT}L${x(first[0], scale).toFixed(1)} ${HEIGHT}Z`;
};

/** Stacks the lines: `values[n]` of the result is the sum of the first n + 1 lines. */
export function stacked(lines: readonly (readonly (number | undefined)[])[]): (number | undefined)[][] {
  const sums: number[] = [];
  return lines.map((line) =>
    line.map((value, index) => {
      if (value === undefined) return undefined;
      const sum = (sums[index] ?? 0) + value;
      sums[index] = sum;
      return sum;
    }),
  );
}
