import { useState } from 'preact/hooks';
import { type Queue, isUnreadable, STATES, type State } from '../api/types.js';
import { live } from '../live/live.js';
import { useMay } from '../state/config.js';
import { paths } from '../state/router.js';
import { useStore } from '../store.js';
import { compact } from '../text/format.js';
import { Text } from '../ui/text.js';
import { DeleteQueue } from './delete-queue.js';
import { KeysList } from './keys.js';
import { ListPage } from './list.js';
import { LocksList } from './locks.js';
import { Page } from './page.js';
import { QueueSummary } from './queue-summary.js';
import { PauseButton } from './queue-table.js';

/** What the page shows: its summary, the tasks in a state, the keys of a fair queue, or the locks of unique tasks. */
interface QueuePageProps {
  queue: string;
  state?: State;
  part?: 'keys' | 'locks';
}

function Tabs({ queue, state, part, row }: QueuePageProps & { row: Queue | undefined }) {
  return (
    <nav class="tabs" aria-label="States, keys and locks">
      <a href={paths.queue(queue)} aria-current={state === undefined && part === undefined ? 'page' : undefined}>
        Summary
      </a>
      {STATES.map((one) => (
        <a
          key={one}
          class={`color-${one}`}
          href={paths.list(queue, one)}
          aria-current={state === one ? 'page' : undefined}
        >
          {one} <b class="number">{row ? compact(row[one]) : '–'}</b>
        </a>
      ))}
      <a href={paths.keys(queue)} aria-current={part === 'keys' ? 'page' : undefined}>
        Keys
      </a>
      <a href={paths.locks(queue)} aria-current={part === 'locks' ? 'page' : undefined}>
        Locks
      </a>
    </nav>
  );
}

function Actions({ row }: { row: Queue }) {
  const may = useMay();
  const [deleting, setDeleting] = useState(false);
  return (
    <>
      {may('act', row.queue) && (
        <a class="button plain" href={paths.enqueue({ queue: row.queue })}>
          Enqueue
        </a>
      )}
      {may('act', row.queue) && <PauseButton row={row} small={false} />}
      {may('destroy', row.queue) && (
        <button type="button" class="button plain" onClick={() => setDeleting(true)}>
          Delete queue
        </button>
      )}
      {deleting && <DeleteQueue row={row} onClose={() => setDeleting(false)} />}
    </>
  );
}

function Content({ queue, state, part, row }: QueuePageProps & { row: Queue | undefined }) {
  if (part === 'keys') return <KeysList queue={queue} />;
  if (part === 'locks') return <LocksList queue={queue} />;
  if (state) return <ListPage key={state} queue={queue} state={state} count={row?.[state]} />;
  return <QueueSummary queue={queue} />;
}

/** One queue: its summary, the tasks in a state, its keys or its locks. */
export function QueuePage({ queue, state, part }: QueuePageProps) {
  const rows = useStore(live, ({ queues }) => queues);
  const found = rows?.find((candidate) => candidate.queue === queue);
  const row = found && !isUnreadable(found) ? found : undefined;
  const heading = (
    <>
      <Text value={queue} />
      {row?.paused && <span class="flag">paused</span>}
    </>
  );
  return (
    <Page
      title={state || part ? `${queue}: ${state ?? part}` : queue}
      above="Queue"
      heading={heading}
      actions={row && <Actions row={row} />}
    >
      <Tabs queue={queue} state={state} part={part} row={row} />
      <Content queue={queue} state={state} part={part} row={row} />
    </Page>
  );
}
