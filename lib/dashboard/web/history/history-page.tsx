import { ApiError } from '../api/client.js';
import { api } from '../api/endpoints.js';
import type { PrometheusResponse } from '../api/fleet-types.js';
import { isUnreadable, type QueueRow } from '../api/types.js';
import { live } from '../live/live.js';
import { Page } from '../pages/page.js';
import { useResource } from '../state/resource.js';
import { replaceQuery, useRoute } from '../state/router.js';
import { useStore } from '../store.js';
import { dateTime, orUnknown, plural, timeOfDay } from '../text/format.js';
import { visible } from '../text/visible.js';
import { Chart } from '../ui/chart.js';
import { Failure, Loading } from '../ui/placeholder.js';
import { Text } from '../ui/text.js';
import { CHARTS, type HistoryChart } from './charts.js';
import { RANGES, type Range, rangeOf } from './ranges.js';
import { figureOf, type History, readHistory, refusalOf } from './responses.js';

/** More lines cannot be told apart; there are as many colours. */
const MAX_LINES = 8;
/** Requested values per line; the chart draws at most half as many. */
const MAX_POINTS = 240;
/** Prometheus itself scrapes every 15 s or less often. */
const POLL_INTERVAL_MS = 30_000;

/**
 * The queues with the most work today, by name. Several names are sent separated by commas, so a
 * name with a comma is left out.
 */
function busiest(rows: readonly QueueRow[]): string[] {
  const done = (row: QueueRow): number => (isUnreadable(row) ? -1 : row.processed + row.size);
  const named = rows.filter(({ queue }) => !queue.includes(','));
  const sorted = [...named].sort((a, b) => done(b) - done(a));
  return sorted
    .slice(0, MAX_LINES)
    .map(({ queue }) => queue)
    .sort();
}

const hour = (time: number): string => timeOfDay(time).slice(0, 5);
const minute = (time: number): string => dateTime(time).slice(0, 16);

function Missing({ chart, reason }: { chart: HistoryChart; reason: string | undefined }) {
  return (
    <section class="card chart" aria-label={chart.title}>
      <header>
        <h2>{chart.title}</h2>
      </header>
      {reason === undefined ? (
        <p class="faint">
          Prometheus has no values of <code>{chart.metric}</code> for this range and these queues.
        </p>
      ) : (
        <p class="problem-text" role="alert">
          Prometheus refuses: <Text value={reason} />
        </p>
      )}
    </section>
  );
}

interface OneChartProps {
  chart: HistoryChart;
  response: PrometheusResponse | undefined;
  range: Range;
  /** The colour of a queue, the same in all charts. */
  colorOf: (queue: string) => string;
}

function OneChart({ chart, response, range, colorOf }: OneChartProps) {
  const refusal = response && refusalOf(response);
  const { times, lines }: History =
    response && refusal === undefined ? readHistory(response) : { times: [], lines: [] };
  if (times.length === 0) return <Missing chart={chart} reason={refusal} />;
  const series = lines
    .slice(0, MAX_LINES)
    .map(({ queue, values }) => ({ name: visible(queue), color: colorOf(queue), values }));
  return (
    <Chart
      title={chart.title}
      unit={chart.unit}
      times={times}
      series={series}
      format={chart.format}
      nice={chart.nice}
      figure={orUnknown(figureOf(lines, chart.figure), chart.format)}
      note={chart.figure === 'sum' && series.length > 1 ? 'in total' : undefined}
      when={range.duration > 86_400 ? minute : hour}
    />
  );
}

interface ChoiceProps {
  range: Range;
  queue: string;
  rows: readonly QueueRow[];
}

function Choice({ range, queue, rows }: ChoiceProps) {
  const { query } = useRoute();
  return (
    <div class="bar-line">
      <div class="segments" role="group" aria-label="Range">
        {RANGES.map(({ name }) => (
          <button
            key={name}
            type="button"
            aria-pressed={name === range.name}
            onClick={() => replaceQuery({ ...query, range: name })}
          >
            {name}
          </button>
        ))}
      </div>
      <label class="choice">
        <span>Queue</span>
        <select value={queue} onChange={(event) => replaceQuery({ ...query, queue: event.currentTarget.value })}>
          <option value="">all</option>
          {queue !== '' && !rows.some((row) => row.queue === queue) && <option value={queue}>{visible(queue)}</option>}
          {rows.map((row) => (
            <option key={row.queue} value={row.queue}>
              {visible(row.queue)}
            </option>
          ))}
        </select>
      </label>
    </div>
  );
}

function Charts({ range, queue, rows }: ChoiceProps) {
  const shown = queue === '' ? busiest(rows) : [queue];
  const asked = queue === '' ? { queues: shown.join(',') } : { queue };
  const { data, error, loading, reload } = useResource(
    JSON.stringify([range.duration, asked]),
    (signal) => api.history({ duration: range.duration, points: MAX_POINTS, ...asked }, signal),
    { every: POLL_INTERVAL_MS, keep: true },
  );
  if (error) return <Failure error={error} retry={reload} />;
  if (!data) return <Loading rows={6} />;
  const refusals = CHARTS.map(({ key }) => (data[key] ? refusalOf(data[key]) : undefined));
  const [first] = refusals;
  // An error of all charts is shown once.
  if (first !== undefined && refusals.every((refusal) => refusal !== undefined)) {
    return <Failure error={new ApiError(`Prometheus refuses: ${first}`, 502, 'UPSTREAM')} retry={reload} />;
  }
  const colorOf = (name: string): string => `line-${Math.max(0, shown.indexOf(name)) % MAX_LINES}`;
  return (
    <>
      {queue === '' && rows.length > shown.length && (
        <p class="faint">
          The {shown.length} of {plural(rows.length, 'queue')} with the most work today. Choose a queue to see another
          one.
        </p>
      )}
      <div class={`charts history${loading ? ' dim' : ''}`}>
        {CHARTS.map((chart) => (
          <OneChart key={chart.key} chart={chart} response={data[chart.key]} range={range} colorOf={colorOf} />
        ))}
      </div>
    </>
  );
}

/** The history of queues, from Prometheus; only if the console has one. */
export function HistoryPage() {
  const { query } = useRoute();
  const rows = useStore(live, ({ queues }) => queues);
  const choice = { range: rangeOf(query['range']), queue: query['queue'] ?? '', rows: rows ?? [] };
  return (
    <Page title="History">
      <Choice {...choice} />
      {rows === undefined && choice.queue === '' ? <Loading rows={6} /> : <Charts {...choice} />}
    </Page>
  );
}
