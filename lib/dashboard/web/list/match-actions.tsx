import { useRef, useState } from 'preact/hooks';
import { api, type ListScope, type BulkAction } from '../api/endpoints.js';
import type { ListedTask } from '../api/task-types.js';
import { refreshLive } from '../live/live.js';
import { count, plural } from '../text/format.js';
import { visible } from '../text/visible.js';
import { FormDialog } from '../ui/dialog.js';
import { notify } from '../ui/notices.js';
import { ActionButtons, useBulkActions } from './action-bars.js';
import { type Batch, sendBatch } from './batches.js';
import { batchResult, LABELS, WARNINGS } from './bulk-actions.js';
import type { Filters } from './filters.js';
import { orderOf } from './order.js';

const SCAN_PER_REQUEST = 2000;

/**
 * Reads the list again and acts on what matches. A task that returns meanwhile, because it failed
 * again, is skipped.
 */
async function actOnMatches(
  scope: ListScope,
  filters: Filters,
  action: BulkAction,
  report: (done: number) => void,
  stopped: () => boolean,
): Promise<Batch> {
  const total: Batch = {};
  const seen = new Set<string>();
  const isNew = ({ id }: ListedTask): boolean => !seen.has(id) && Boolean(seen.add(id));
  let cursor: string | undefined;
  do {
    const page = await api.list(scope, { ...filters, cursor, order: orderOf(scope, cursor), scan: SCAN_PER_REQUEST });
    const ids = page.tasks.filter(isNew).map(({ id }) => id);
    await sendBatch(scope, action, ids, total);
    report(seen.size);
    cursor = page.next_cursor ?? undefined;
  } while (cursor !== undefined && !stopped());
  return total;
}

interface MatchActionsProps {
  scope: ListScope;
  filters: Filters;
  /** How many tasks the search has found so far. */
  found: number;
  /** Whether the search has reached the end. */
  complete: boolean;
  onDone: () => void;
}

/**
 * Acts on all tasks that match the filters, also where the search has not been yet, after a
 * confirmation.
 */
export function MatchActions({ scope, filters, found, complete, onDone }: MatchActionsProps) {
  const actions = useBulkActions(scope);
  const [asked, setAsked] = useState<BulkAction>();
  const [done, setDone] = useState<number>();
  const closed = useRef(false);
  if (found === 0 || actions.length === 0) return null;
  const many = complete ? `all ${count(found)}` : 'all';
  const act = async (action: BulkAction): Promise<void> => {
    closed.current = false;
    setDone(0);
    const [text, failed] = batchResult(
      action,
      await actOnMatches(scope, filters, action, setDone, () => closed.current),
    );
    notify(text, { failed });
    onDone();
    refreshLive();
  };
  const close = (): void => {
    closed.current = true;
    setAsked(undefined);
    setDone(undefined);
  };
  return (
    <div class="all-actions">
      <span class="faint">{many} that match:</span>
      <ActionButtons actions={actions} what="all that match" onPress={setAsked} />
      {asked && (
        <FormDialog
          title={`${LABELS[asked]}: ${many} ${scope.state} tasks that match?`}
          does={`${LABELS[asked]} all`}
          danger={asked === 'delete'}
          onSubmit={() => act(asked)}
          onClose={close}
        >
          <p>
            {complete ? '' : 'This includes tasks that the search has not reached yet. '}
            They are in queue <b>{visible(scope.queue)}</b>: {describe(filters)}. {WARNINGS[asked]}
          </p>
          {done !== undefined && <p role="status">{plural(done, 'task')} so far …</p>}
        </FormDialog>
      )}
    </div>
  );
}

const describe = (filters: Filters): string =>
  Object.entries(filters)
    .filter(([, value]) => value)
    .map(([name, value]) => `${name.replace('_', ' ')} “${visible(String(value))}”`)
    .join(', ');
