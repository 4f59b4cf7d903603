import { api } from '../api/endpoints.js';
import type { Attempt, Attempts } from '../api/attempt-types.js';
import type { Task } from '../api/task-types.js';
import { When } from '../live/time.js';
import { useRefreshInterval } from '../state/config.js';
import { useResource } from '../state/resource.js';
import { count, duration } from '../text/format.js';
import { visible } from '../text/visible.js';
import { LongText, Text } from '../ui/text.js';

/** The task itself is read more often. */
const SLOWER = 8;

const COLORS: Readonly<Record<Attempt['outcome'], string>> = {
  failed: 'retry',
  crashed: 'archived',
  completed: 'completed',
};

/** Attempts, newest first, and between them the numbers of those of which nothing is known. */
function withGaps({ attempts, total }: Attempts): (Attempt | { from: number; to: number })[] {
  const rows: (Attempt | { from: number; to: number })[] = [];
  let next = total;
  for (const attempt of attempts.toReversed()) {
    if (attempt.number < next) rows.push({ from: attempt.number + 1, to: next });
    rows.push(attempt);
    next = attempt.number - 1;
  }
  if (next > 0) rows.push({ from: 1, to: next });
  return rows;
}

const Gap = ({ from, to }: { from: number; to: number }) => (
  <li class="color-pending">
    <p class="faint">
      {from === to ? `Attempt ${count(from)}` : `Attempts ${count(from)} to ${count(to)}`}: nothing is known any more
    </p>
  </li>
);

/** The id of the server, which is long, is for those who search for it. */
const Server = ({ server }: { server: string }) => {
  const [, host, pid] = /^(.+?):(\d+)(?::|$)/.exec(server) ?? [];
  return (
    <span title={visible(server)}>
      <Text value={host === undefined ? server : `${host} (pid ${pid})`} class="wrap" />
    </span>
  );
};

function Row({ attempt }: { attempt: Attempt }) {
  const { number, outcome, started_at, ended_at, duration_seconds, server, error, stack } = attempt;
  return (
    <li class={`color-${COLORS[outcome]}`}>
      <div class="step-line">
        <b>Attempt {count(number)}</b>
        <span class={`chip color-${COLORS[outcome]}`}>{outcome}</span>
        {duration_seconds !== null && <span class="faint">{duration(duration_seconds)}</span>}
        <span class="faint">{server === null ? 'on an unknown server' : <Server server={server} />}</span>
      </div>
      <p class="faint">
        {started_at === null && 'last sign of life '}
        <When at={started_at ?? ended_at} />
      </p>
      {error !== '' && (
        <p class="problem-text">
          <LongText value={error} lines />
        </p>
      )}
      {stack !== null && (
        <details>
          <summary>
            stack<span class="sr-only"> of attempt {count(number)}</span>
          </summary>
          <pre class="raw" tabIndex={0}>
            <LongText value={stack} lines />
          </pre>
        </details>
      )}
    </li>
  );
}

/** The attempts of a task that have ended, if one has failed. */
export const AttemptsCard = ({ task }: { task: Task }) =>
  task.retried > 0 || task.last_failed_at !== '' ? <Read task={task} /> : null;

function Read({ task: { queue, id, state, retried, last_failed_at, completed_at } }: { task: Task }) {
  // An attempt that ends changes one of these, so that it is seen at once; the interval is for those that fail within a second, and do not count.
  const isOver = state === 'completed' || state === 'archived';
  const interval = useRefreshInterval(SLOWER);
  const key = JSON.stringify([queue, id, state, retried, last_failed_at, completed_at]);
  const { data } = useResource(key, (signal) => api.attempts(queue, id, signal), {
    every: isOver ? 0 : interval,
    keep: true,
  });
  if (!data || data.total === 0) return null;
  return (
    <section class="card" aria-label="Attempts">
      <header>
        <h2>Attempts</h2>
        <span class="faint">{count(data.total)}</span>
      </header>
      <ol class="steps-line" reversed>
        {withGaps(data).map((row) =>
          'outcome' in row ? (
            <Row key={row.number} attempt={row} />
          ) : (
            <Gap key={row.from} from={row.from} to={row.to} />
          ),
        )}
      </ol>
    </section>
  );
}
