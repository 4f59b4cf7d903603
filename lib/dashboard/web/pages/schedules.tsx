import { api } from '../api/endpoints.js';
import type { Entry } from '../api/fleet-types.js';
import { refreshLive } from '../live/live.js';
import { perform } from '../live/perform.js';
import { Ago, When } from '../live/time.js';
import { useMay, useRefreshInterval } from '../state/config.js';
import { useResource } from '../state/resource.js';
import { paths } from '../state/router.js';
import { messageOf } from '../text/errors.js';
import { visible } from '../text/visible.js';
import { Button } from '../ui/button.js';
import { notify } from '../ui/notices.js';
import { Empty, Failure, Loading } from '../ui/placeholder.js';
import { ACTIONS_HEAD, numberHeads, TableHead } from '../ui/table-head.js';
import { Text } from '../ui/text.js';
import { Page } from './page.js';
import { QueueLink } from './queue-link.js';

export function RunEntry({ entry, onDone }: { entry: Pick<Entry, 'id' | 'task_type'>; onDone: () => void }) {
  const run = async (): Promise<void> => {
    try {
      const made = await api.runEntry(entry.id);
      notify(`“${visible(entry.task_type)}” is enqueued.`, { href: paths.task(made.queue, made.id) });
      refreshLive();
      onDone();
    } catch (error) {
      notify(messageOf(error), { failed: true });
    }
  };
  return (
    <Button small onClick={run} label={`Run now: ${visible(entry.task_type)}`}>
      Run now
    </Button>
  );
}

const GO_ENTRY = "A scheduler of Go's asynq has this entry. It knows no pause: stop it there.";

/** What is pressed counts for all processes that have the entry. */
export function PauseEntry({ entry, onDone }: { entry: Entry; onDone: () => void }) {
  const name = visible(entry.task_type);
  const change = async (): Promise<void> => {
    await (entry.paused_at === null
      ? perform(`The schedule of “${name}” is paused.`, () => api.changeEntry(entry.id, 'pause'))
      : perform(`The schedule of “${name}” is resumed.`, () => api.changeEntry(entry.id, 'resume')));
    onDone();
  };
  const does = entry.paused_at === null ? 'Pause' : 'Resume';
  return (
    <Button
      small
      disabled={!entry.can_pause}
      onClick={change}
      label={`${does}: ${name}`}
      title={entry.can_pause ? undefined : GO_ENTRY}
    >
      {does}
    </Button>
  );
}

/** When it is due next, unless it is paused. */
export const NextTime = ({ entry, long }: { entry: Entry; long?: boolean }) => {
  if (entry.paused_at === null) return long ? <When at={entry.next_enqueue_at} /> : <Ago at={entry.next_enqueue_at} />;
  return (
    <>
      <span class="flag">paused</span> {long && <When at={entry.paused_at} />}
    </>
  );
};

/** The queue has its own column. */
const optionsOf = ({ options }: Entry): string => options.filter((option) => !option.startsWith('Queue(')).join(', ');

function Row({ entry, reload }: { entry: Entry; reload: () => void }) {
  const may = useMay();
  return (
    <tr data-row>
      <th scope="row" class="task">
        <a href={paths.schedule(entry.id)} data-open>
          <Text value={entry.task_type} titled class="cut" />
          <Text value={entry.id} titled class="cut mono id" />
        </a>
      </th>
      <td data-label="spec" class="mono">
        <Text value={entry.spec} class="wrap" />
      </td>
      <td data-label="queue">
        <QueueLink name={entry.queue} />
      </td>
      <td data-label="options" class="wide">
        {optionsOf(entry) ? <Text value={optionsOf(entry)} titled class="cut" /> : <span class="none">–</span>}
      </td>
      <td class="number" data-label="previous">
        <Ago at={entry.prev_enqueue_at} none="never" />
      </td>
      <td class="number" data-label="next">
        <NextTime entry={entry} />
      </td>
      {may('act') && (
        <td class="row-actions">
          {may('act', entry.queue) && (
            <>
              <RunEntry entry={entry} onDone={reload} />
              <PauseEntry entry={entry} onDone={reload} />
            </>
          )}
        </td>
      )}
    </tr>
  );
}

/** Periodic tasks of all running schedulers. */
export function SchedulesPage() {
  const may = useMay();
  const { data, error, reload } = useResource('entries', (signal) => api.entries(signal), {
    every: useRefreshInterval(2.5),
  });
  const entries = [...(data?.entries ?? [])].sort((a, b) => a.next_enqueue_at.localeCompare(b.next_enqueue_at));
  return (
    <Page title="Schedules">
      {!data && (error ? <Failure error={error} retry={reload} /> : <Loading />)}
      {data && entries.length === 0 && (
        <Empty title="No schedule">Schedules appear here while their process runs.</Empty>
      )}
      {entries.some((entry) => !entry.can_pause) && (
        <p class="faint">
          Some of these are of schedulers of Go's asynq. They know no pause: stop those schedulers, or remove the
          entries there.
        </p>
      )}
      {entries.length > 0 && (
        <div class="table-card">
          <table class="grid-table cards tasks schedules">
            <TableHead
              heads={[
                'task',
                'spec',
                'queue',
                'options',
                ...numberHeads('previous', 'next'),
                ...(may('act') ? [ACTIONS_HEAD] : []),
              ]}
            />
            <tbody>
              {entries.map((entry) => (
                <Row key={entry.id} entry={entry} reload={reload} />
              ))}
            </tbody>
          </table>
        </div>
      )}
    </Page>
  );
}
