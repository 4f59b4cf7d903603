import { useState } from 'preact/hooks';
import { api } from '../api/endpoints.js';
import type { Lock } from '../api/lock-types.js';
import { Ago } from '../live/time.js';
import { useMay, useRefreshInterval } from '../state/config.js';
import { useResource } from '../state/resource.js';
import { paths, useRoute } from '../state/router.js';
import { Button } from '../ui/button.js';
import { FormDialog } from '../ui/dialog.js';
import { notify } from '../ui/notices.js';
import { Empty, Failure, Loading } from '../ui/placeholder.js';
import { StateChip } from '../ui/state.js';
import { ACTIONS_HEAD, numberHeads, TableHead } from '../ui/table-head.js';
import { Text } from '../ui/text.js';
import { ForwardPages } from '../ui/turns.js';

const BY: Readonly<Record<NonNullable<Lock['by']>, string>> = {
  payload: 'payload',
  key: 'key',
  last: 'key, the last task',
  fields: 'fields',
};

function Value({ lock: { value, redacted } }: { lock: Lock }) {
  if (redacted) return <span class="flag">redacted</span>;
  return value ? <Text value={value} titled class="cut mono" /> : <span class="none">–</span>;
}

function Holder({ queue, lock: { task_id: id, state } }: { queue: string; lock: Lock }) {
  if (state === null) {
    return (
      <>
        <Text value={id} titled class="cut mono" />
        <span class="faint">over</span>
      </>
    );
  }
  return (
    <>
      <a href={paths.task(queue, id)} data-open>
        <Text value={id} titled class="cut mono" />
      </a>
      <StateChip state={state} />
    </>
  );
}

interface FreeDialogProps {
  queue: string;
  lock: Lock;
  onFreed: () => void;
  onClose: () => void;
}

/** Frees a lock that the task still holds that was seen to hold it. */
function FreeDialog({ queue, lock, onFreed, onClose }: FreeDialogProps) {
  const free = async (): Promise<void> => {
    await api.releaseLock(queue, lock);
    notify('The lock is freed.');
    onFreed();
  };
  return (
    <FormDialog title="Free this lock?" does="Free" danger onSubmit={free} onClose={onClose}>
      <p>
        <Text value={lock.name!} class="wrap mono" />
      </p>
      <p>
        Task <Text value={lock.task_id} class="wrap mono" /> stays as it is. The next equal task is a new one, and may
        run beside it. This cannot be undone.
      </p>
    </FormDialog>
  );
}

interface RowProps {
  queue: string;
  lock: Lock;
  /** `undefined`: the user may not free locks. */
  onFree: (() => void) | undefined;
}

const Row = ({ queue, lock, onFree }: RowProps) => (
  <tr data-row tabIndex={-1}>
    <th scope="row" class="task">
      {lock.type === null ? <span class="none">–</span> : <Text value={lock.type} titled class="cut" />}
    </th>
    <td data-label="compares">{lock.by ? BY[lock.by] : <span class="none">–</span>}</td>
    <td data-label="value" class="wide">
      <Value lock={lock} />
    </td>
    <td data-label="held by" class="wide">
      <Holder queue={queue} lock={lock} />
    </td>
    <td data-label="until" class="number">
      <Ago at={lock.expires_at} none="no end" />
    </td>
    {onFree && (
      <td class="row-actions">
        {lock.name !== null && (
          <Button small kind="danger" onClick={onFree} label={`Free: ${lock.name}`}>
            Free
          </Button>
        )}
      </td>
    )}
  </tr>
);

/** The locks of unique tasks in a queue, with who holds them. Redis finds them in no order. */
export function LocksList({ queue }: { queue: string }) {
  const { cursor } = useRoute().query;
  const may = useMay()('destroy', queue);
  const [asked, setAsked] = useState<Lock>();
  const { data, error, loading, reload } = useResource(
    JSON.stringify(['locks', queue, cursor]),
    (signal) => api.locks(queue, { cursor }, signal),
    { every: useRefreshInterval(5), keep: true },
  );
  if (!data) return error ? <Failure error={error} retry={reload} /> : <Loading rows={8} />;
  const { locks, next_cursor: next } = data;
  return (
    <>
      {locks.length === 0 ? (
        <Empty title={cursor === undefined && next === null ? 'No locks' : 'No lock on this page'}>
          {next !== null && 'There may be more on the next page.'}
        </Empty>
      ) : (
        <div class={`table-card${loading ? ' dim' : ''}`}>
          <table class="grid-table cards tasks">
            <TableHead
              heads={['type', 'compares', 'value', 'held by', ...numberHeads('until'), ...(may ? [ACTIONS_HEAD] : [])]}
            />
            <tbody>
              {locks.map((lock, index) => (
                <Row key={index} queue={queue} lock={lock} onFree={may ? () => setAsked(lock) : undefined} />
              ))}
            </tbody>
          </table>
        </div>
      )}
      {asked && <FreeDialog queue={queue} lock={asked} onFreed={reload} onClose={() => setAsked(undefined)} />}
      {/* While the next page loads, the cursor still belongs to the page before. */}
      <ForwardPages
        cursor={cursor}
        next={loading ? null : next}
        to={(wanted) => paths.locks(queue, { cursor: wanted })}
      />
    </>
  );
}
