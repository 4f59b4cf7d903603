import { api } from '../api/endpoints.js';
import type { FailureGroup, State } from '../api/types.js';
import { Ago } from '../live/time.js';
import { useRefreshInterval } from '../state/config.js';
import { useResource } from '../state/resource.js';
import { paths } from '../state/router.js';
import { count, plural } from '../text/format.js';
import { Failure } from '../ui/placeholder.js';
import { numberHeads, TableHead } from '../ui/table-head.js';
import { Text } from '../ui/text.js';

interface RowProps {
  queue: string;
  group: FailureGroup;
}

/** The tasks of a group in one state, linked to the list in which all of them can be acted on. */
function Tasks({ queue, group, state }: RowProps & { state: State & ('retry' | 'archived') }) {
  if (group[state] === 0) return <span class="none">0</span>;
  const query = { type: group.type, error: group.match };
  return (
    <a href={paths.list(queue, state, query)}>
      {count(group[state])}
      <span class="sr-only"> {state}</span>
    </a>
  );
}

function Row({ queue, group }: RowProps) {
  return (
    <tr data-row>
      <th scope="row" class="task">
        <a href={paths.task(queue, group.task_id)} data-open>
          <Text value={group.type} titled class="cut" />
        </a>
      </th>
      <td class="wide" data-label="error">
        <Text value={group.error} titled class="cut two problem-text" />
      </td>
      <td class="number" data-label="retry">
        <Tasks queue={queue} group={group} state="retry" />
      </td>
      <td class="number" data-label="archived">
        <Tasks queue={queue} group={group} state="archived" />
      </td>
      <td class="number" data-label="first">
        <Ago at={group.first_failed_at} />
      </td>
      <td class="number" data-label="last">
        <Ago at={group.last_failed_at} />
      </td>
    </tr>
  );
}

/** Which task types of a queue fail, why, and since when. */
export function Failures({ queue }: { queue: string }) {
  const { data, error, reload } = useResource(`failures ${queue}`, (signal) => api.failures(queue, signal), {
    every: useRefreshInterval(5),
  });
  if (error && !data) return <Failure error={error} retry={reload} />;
  if (!data || data.failures.length === 0) return null;
  return (
    <section class="table-card failures">
      <header>
        <h2>What fails</h2>
        <p class="faint">
          {data.scanned < data.total
            ? `${count(data.scanned)} of ${plural(data.total, 'task')} scanned: next retries, newest archived`
            : `${plural(data.total, 'task')} in retry and archived`}
        </p>
      </header>
      <table class="grid-table cards tasks">
        <TableHead heads={['type', 'error', ...numberHeads('retry', 'archived', 'first', 'last')]} />
        <tbody>
          {data.failures.map((group) => (
            <Row key={`${group.type} ${group.match} ${group.task_id}`} queue={queue} group={group} />
          ))}
        </tbody>
      </table>
    </section>
  );
}
