import { HEIGHT, areaPath, linePath, runs, WIDTH } from './chart-geometry.js';
import { thin } from './series.js';

/** More points cannot be told apart at this size. */
const MAX_POINTS = 24;

/** A line of the size of a word, beside its number. */
interface SparkProps {
  times: readonly number[];
  values: readonly (number | undefined)[];
  color: string;
}

export function Spark({ color, ...all }: SparkProps) {
  const { times, series } = thin(all.times, [{ name: '', color, values: all.values }], MAX_POINTS);
  const values = series[0]?.values ?? [];
  const top = Math.max(0, ...values.map((value) => value ?? 0)) * 1.1 || 1;
  const scale = { from: times[0] ?? 0, to: times.at(-1) ?? 1, top };
  return (
    <svg
      class={`spark color-${color}`}
      viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
      preserveAspectRatio="none"
      aria-hidden="true"
    >
      {runs(times, values).map((run, index) => (
        <g key={index}>
          <path class="area" d={areaPath(run, scale)} />
          <path class="line" d={linePath(run, scale)} vector-effect="non-scaling-stroke" />
        </g>
      ))}
    </svg>
  );
}
