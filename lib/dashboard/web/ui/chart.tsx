import { useState } from 'preact/hooks';
import { clockDuration, duration, timeOfDay } from '../text/format.js';
import { areaPath, HEIGHT, linePath, niceTop, runs, type Scale, stacked, WIDTH, x } from './chart-geometry.js';
import { type Series, thin } from './series.js';

export interface ChartProps {
  title: string;
  /** The current number, as text. */
  figure: string;
  unit: string;
  /** Shown beside the figure. */
  note?: string;
  times: readonly number[];
  series: readonly Series[];
  format: (value: number) => string;
  /** Whether the values add up to a whole. */
  stack?: boolean;
  /** How a time is written. Default: the time of day. */
  when?: (time: number) => string;
  /** Rounds the end of the axis. Default: the next round number. */
  nice?: (value: number) => number;
}

const known = (values: readonly (number | undefined)[]): number[] => values.filter((value) => value !== undefined);

function Lines({
  times,
  series,
  scale,
  stack = false,
}: Pick<ChartProps, 'times' | 'series' | 'stack'> & { scale: Scale }) {
  const lines = stack ? stacked(series.map(({ values }) => values)) : series.map(({ values }) => values);
  // Filled areas of crossing lines would hide each other.
  const isFilled = stack || series.length === 1;
  // The top line is drawn first, so that the areas below cover their part of it.
  const order = series.map((_, index) => index).reverse();
  return order.map((index) => {
    const color = `color-${series[index]?.color}`;
    return runs(times, lines[index] ?? []).map((run, part) => (
      <g key={`${index}.${part}`} class={color}>
        {isFilled && <path class={stack ? 'area solid' : 'area'} d={areaPath(run, scale)} />}
        <path class="line" d={linePath(run, scale)} vector-effect="non-scaling-stroke" />
      </g>
    ));
  });
}

/** The index of the time nearest to the pointer. */
function nearest(times: readonly number[], time: number): number {
  let best = 0;
  for (const [index, candidate] of times.entries()) {
    if (Math.abs(candidate - time) < Math.abs((times[best] as number) - time)) best = index;
  }
  return best;
}

function summary({ title, unit, times, series, format }: ChartProps): string {
  const span = (times.at(-1) ?? 0) - (times[0] ?? 0);
  const parts = series.map(({ name, values }) => {
    const numbers = known(values);
    if (numbers.length === 0) return `${name}: nothing yet`;
    return `${name}: now ${format(numbers.at(-1) as number)}, highest ${format(Math.max(...numbers))}`;
  });
  return `${title}, ${unit}, last ${clockDuration(span / 1000)}. ${parts.join('; ')}.`;
}

function Tip({ index, at, times, series, format, when = timeOfDay }: ChartProps & { index: number; at: number }) {
  return (
    <div class={at > 0.5 ? 'tip left' : 'tip'} style={{ insetInlineStart: `${at * 100}%` }}>
      <p>{when(times[index] as number)}</p>
      {series.map(({ name, color, values }) => (
        <p key={name} class={`tip-line color-${color}`}>
          <span>{name}</span>
          <b>{values[index] === undefined ? '–' : format(values[index])}</b>
        </p>
      ))}
    </div>
  );
}

/** The same values as a table of about twenty rows, for those who cannot see the chart. */
function Numbers({ title, times, series, format, when = timeOfDay }: ChartProps) {
  const step = Math.max(1, Math.ceil(times.length / 20));
  const shown = times.map((_, index) => index).filter((index) => (times.length - 1 - index) % step === 0);
  return (
    <div class="scroll-x" tabIndex={0} role="region" aria-label={`${title}, numbers`}>
      <table class="numbers">
        <thead>
          <tr>
            <th scope="col">time</th>
            {series.map(({ name }) => (
              <th key={name} scope="col" class="number">
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {shown.reverse().map((index) => (
            <tr key={times[index]}>
              <th scope="row">{when(times[index] as number)}</th>
              {series.map(({ name, values }) => (
                <td key={name} class="number">
                  {values[index] === undefined ? '–' : format(values[index])}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Drawing(props: ChartProps) {
  const { times, series, stack, format, nice = niceTop } = props;
  const [hover, setHover] = useState<number>();
  const totals = stack
    ? (stacked(series.map(({ values }) => values)).at(-1) ?? [])
    : series.flatMap(({ values }) => values);
  const scale = { from: times[0] ?? 0, to: times.at(-1) ?? 1, top: nice(Math.max(0, ...known(totals))) };
  const index =
    hover === undefined || times.length === 0
      ? undefined
      : nearest(times, scale.from + hover * (scale.to - scale.from));
  const at = index === undefined ? 0 : x(times[index] as number, scale) / WIDTH;
  const move = (event: PointerEvent): void => {
    const box = (event.currentTarget as Element).getBoundingClientRect();
    setHover((event.clientX - box.left) / box.width);
  };
  return (
    <div class="plot" onPointerMove={move} onPointerLeave={() => setHover(undefined)}>
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" role="img" aria-label={summary(props)}>
        <path class="grid" d={`M0 ${HEIGHT / 2}H${WIDTH}M0 0.5H${WIDTH}`} vector-effect="non-scaling-stroke" />
        <Lines times={times} series={series} scale={scale} stack={stack} />
        <path class="base" d={`M0 ${HEIGHT}H${WIDTH}`} vector-effect="non-scaling-stroke" />
        {index !== undefined && (
          <path class="cross" d={`M${at * WIDTH} 0V${HEIGHT}`} vector-effect="non-scaling-stroke" />
        )}
      </svg>
      <span class="axis-top">{format(scale.top)}</span>
      {index !== undefined && <Tip {...props} index={index} at={at} />}
    </div>
  );
}

/** A card with one number and its recent history. */
export function Chart(all: ChartProps) {
  const { title, figure, unit, note } = all;
  const { times, series } = thin(all.times, all.series);
  const props = { ...all, times, series };
  const [open, setOpen] = useState(false);
  const span = times.length > 1 ? ((times.at(-1) as number) - (times[0] as number)) / 1000 : 0;
  return (
    <section class="card chart">
      <header>
        <h2>{title}</h2>
        <button type="button" class="quiet" aria-expanded={open} onClick={() => setOpen(!open)}>
          {open ? 'chart' : 'numbers'}
          <span class="sr-only"> of {title}</span>
        </button>
      </header>
      <p class="figure">
        <b>{figure}</b> <span>{unit}</span>
        {note && <small>{note}</small>}
      </p>
      {open ? <Numbers {...props} /> : <Drawing {...props} />}
      <footer>
        <span>
          {span > 0 ? `${duration(span < 60 ? Math.floor(span) : Math.floor(span / 60) * 60)} ago` : 'collecting'}
        </span>
        {series.length > 1 && (
          <ul class="legend">
            {series.map(({ name, color }) => (
              <li key={name} class={`color-${color}`}>
                {name}
              </li>
            ))}
          </ul>
        )}
        {series.length < 2 && <span>now</span>}
      </footer>
    </section>
  );
}
