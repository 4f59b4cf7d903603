import type { Daily } from '../api/types.js';
import { live, type Moment, serverNow } from '../live/live.js';
import { highest, rates, recent, sums } from '../live/series.js';
import { useStore } from '../store.js';
import { compact, duration, orUnknown, percent, rate } from '../text/format.js';
import { niceTime } from '../ui/chart-geometry.js';
import { Chart } from '../ui/chart.js';
import type { Series } from '../ui/series.js';
import { meanRates } from './sum-days.js';

const seconds = (value: number): string => duration(value / 1000);

/** What the charts show, of one queue or of all. */
function measure(moments: readonly Moment[], queue: string | undefined) {
  const processed = rates(moments, (sample) => sample.processed_total, queue);
  const failed = rates(moments, (sample) => sample.failed_total, queue);
  const latency = highest(moments, (sample) => sample.latency_ms, queue);
  const pending = sums(moments, (sample) => sample.pending, queue);
  const waiting = sums(moments, (sample) => sample.scheduled + sample.aggregating + sample.waiting, queue);
  const retry = sums(moments, (sample) => sample.retry, queue);
  const held = sums(moments, (sample) => sample.held, queue);
  const last = [pending, held, retry, waiting].map((values) => values.at(-1));
  const backlog = last.includes(undefined) ? undefined : last.reduce<number>((total, value) => total + (value ?? 0), 0);
  const [failing, passing] = [recent(failed), recent(processed)];
  const share = failing === undefined || passing === undefined ? undefined : percent(failing, passing);
  return { processed, failed, latency, pending, held, waiting, retry, backlog, failing, passing, share };
}

/** Until samples cover this, the stored counters fill the charts. */
const FILLED_MS = 5 * 60_000;

/** Puts the mean rate of the stored counters beside samples that have only begun. */
function filled(times: readonly number[], series: Series, mean: number | undefined) {
  const last = times.at(-1);
  if (last === undefined || mean === undefined || last - times[0]! >= FILLED_MS) return { times, series: [series] };
  const long = [last - FILLED_MS, ...times];
  const line = { name: 'mean of two days', color: 'pending', values: long.map(() => mean) };
  return { times: long, series: [{ ...series, values: [undefined, ...series.values] }, line] };
}

interface LiveChartsProps {
  queue?: string;
  /** What is stored of the last days, of the queue or of all. */
  days?: readonly Daily[];
}

/** Throughput, failures, backlog and latency since the first sample, of one queue or of all. */
export function LiveCharts({ queue, days = [] }: LiveChartsProps) {
  const moments = useStore(live, ({ moments }) => moments);
  const times = moments.map(({ t }) => t);
  const mean = meanRates(days, serverNow());
  const { processed, failed, latency, pending, held, waiting, retry, ...now } = measure(moments, queue);
  return (
    <div class="charts">
      <Chart
        title="Throughput"
        unit="tasks/s"
        figure={orUnknown(now.passing, rate)}
        format={rate}
        {...filled(times, { name: 'processed', color: 'accent', values: processed }, mean?.processed)}
      />
      <Chart
        title="Failures"
        unit="failed/s"
        figure={orUnknown(now.failing, rate)}
        format={rate}
        note={now.share}
        {...filled(times, { name: 'failed', color: 'archived', values: failed }, mean?.failed)}
      />
      <Chart
        title="Backlog"
        unit="waiting"
        figure={orUnknown(now.backlog, compact)}
        times={times}
        format={compact}
        stack
        series={[
          { name: 'pending', color: 'pending', values: pending },
          { name: 'held', color: 'held', values: held },
          { name: 'retry', color: 'retry', values: retry },
          { name: 'later', color: 'scheduled', values: waiting },
        ]}
      />
      <Chart
        title="Latency"
        unit="oldest"
        figure={orUnknown(latency.at(-1), seconds)}
        times={times}
        format={seconds}
        nice={niceTime}
        series={[{ name: queue === undefined ? 'longest' : 'oldest', color: 'completed', values: latency }]}
      />
    </div>
  );
}
