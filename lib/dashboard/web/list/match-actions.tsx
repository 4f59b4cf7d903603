import { useRef, useState } from 'preact/hooks';
import { api, type Place, type Verb } from '../api/endpoints.js';
import type { ListedTask } from '../api/task-types.js';
import { refreshLive } from '../live/live.js';
import { count, plural } from '../text/format.js';
import { visible } from '../text/visible.js';
import { Button } from '../ui/button.js';
import { FormDialog } from '../ui/dialog.js';
import { tell } from '../ui/notices.js';
import { type Batch, sendBatch, useVerbs } from './actions.js';
import type { Filters } from './filters.js';
import { orderOf } from './order.js';
import { batchResult, LABELS, WARNINGS } from './verbs.js';

/** Entries looked at per call. */
const SCAN = 2000;

/** Goes through the list once more and acts on what matches. What comes back meanwhile, as it failed again, is left alone. */
async function actOnMatches(
  place: Place,
  filters: Filters,
  verb: Verb,
  report: (done: number) => void,
  stopped: () => boolean,
): Promise<Batch> {
  const total: Batch = {};
  const seen = new Set<string>();
  const isNew = ({ id }: ListedTask): boolean => !seen.has(id) && Boolean(seen.add(id));
  let cursor: string | undefined;
  do {
    const page = await api.list(place, { ...filters, cursor, order: orderOf(place, cursor), scan: SCAN });
    const ids = page.tasks.filter(isNew).map(({ id }) => id);
    await sendBatch(place, verb, ids, total);
    report(seen.size);
    cursor = page.next_cursor ?? undefined;
  } while (cursor !== undefined && !stopped());
  return total;
}

interface MatchActionsProps {
  place: Place;
  filters: Filters;
  /** How many the search has found so far. */
  found: number;
  /** Whether those are all. */
  complete: boolean;
  onDone: () => void;
}

/** Acts on all tasks that the filters match, whether the search has come to them or not; asks first. */
export function MatchActions({ place, filters, found, complete, onDone }: MatchActionsProps) {
  const verbs = useVerbs(place);
  const [asked, setAsked] = useState<Verb>();
  const [done, setDone] = useState<number>();
  const closed = useRef(false);
  if (found === 0 || verbs.length === 0) return null;
  const many = complete ? `all ${count(found)}` : 'all';
  const act = async (verb: Verb): Promise<void> => {
    closed.current = false;
    setDone(0);
    const [text, failed] = batchResult(verb, await actOnMatches(place, filters, verb, setDone, () => closed.current));
    tell(text, { failed });
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
      {verbs.map((verb) => (
        <Button key={verb} small onClick={() => setAsked(verb)} label={`${LABELS[verb]}: all that match`}>
          {LABELS[verb]}
        </Button>
      ))}
      {asked && (
        <FormDialog
          title={`${LABELS[asked]}: ${many} ${place.state} tasks that match?`}
          does={`${LABELS[asked]} all`}
          danger={asked === 'delete'}
          onSubmit={() => act(asked)}
          onClose={close}
        >
          <p>
            {complete ? '' : 'Also those the search has not come to yet. '}
            They are in queue <b>{visible(place.queue)}</b>: {describe(filters)}. {WARNINGS[asked]}
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
    .map(([name, value]) => `${name} “${visible(String(value))}”`)
    .join(', ');
