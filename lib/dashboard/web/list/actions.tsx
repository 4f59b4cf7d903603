import { useState } from 'preact/hooks';
import { messageOf } from '../text/errors.js';
import { api, type Place, type Verb } from '../api/endpoints.js';
import { useMay } from '../state/config.js';
import { refreshLive } from '../live/live.js';
import { count, plural } from '../text/format.js';
import { visible } from '../text/visible.js';
import { Button } from '../ui/button.js';
import { FormDialog } from '../ui/dialog.js';
import { tell } from '../ui/notices.js';
import type { Selection } from './selection.js';
import { allResult, batchResult, LABELS, NEEDS, verbsOf, WARNINGS } from './verbs.js';

interface ActionsProps {
  place: Place;
  selection: Selection;
  onDone: () => void;
}

/** Ids per request: the server takes no bodies of more than a megabyte. */
const BATCH = 500;

/** What replies to batches say together: ids by `archived_ids`, `error_ids` … */
export type Batch = Record<string, string[]>;

export async function sendBatch(place: Place, verb: Verb, ids: readonly string[], total: Batch): Promise<void> {
  for (let from = 0; from < ids.length; from += BATCH) {
    const reply = await api.batch(place, verb, ids.slice(from, from + BATCH));
    for (const [name, some] of Object.entries(reply)) (total[name] ??= []).push(...(some ?? []));
  }
}

async function batch(place: Place, verb: Verb, ids: readonly string[]): Promise<void> {
  const total: Batch = {};
  await sendBatch(place, verb, ids, total);
  const [text, failed] = batchResult(verb, total);
  tell(text, { failed });
}

export function useVerbs(place: Place): readonly Verb[] {
  const may = useMay();
  return verbsOf(place.state).filter((verb) => may(NEEDS[verb], place.queue));
}

let measuring: ResizeObserver | undefined;

/** Notices come at the bottom, too: above the bar, however many lines it has, and not on it. */
function leaveRoom(bar: HTMLElement | null): void {
  const { style } = document.documentElement;
  measuring?.disconnect();
  style.removeProperty('--selection-bar');
  if (!bar) return;
  measuring = new ResizeObserver(() => style.setProperty('--selection-bar', `${bar.offsetHeight}px`));
  measuring.observe(bar);
}

/** The bar that comes when rows are selected. */
export function SelectionBar({ place, selection, onDone }: ActionsProps) {
  const verbs = useVerbs(place);
  const [deleting, setDeleting] = useState(false);
  const act = async (verb: Verb): Promise<void> => {
    await batch(place, verb, selection.ids);
    selection.clear();
    onDone();
    refreshLive();
  };
  const press = (verb: Verb): Promise<void> => act(verb).catch((error) => tell(messageOf(error), { failed: true }));
  if (selection.ids.length === 0) return null;
  return (
    <div class="selection-bar" role="toolbar" aria-label="Selected tasks" ref={leaveRoom}>
      <b>{plural(selection.ids.length, 'task')} selected</b>
      {verbs.map((verb) => (
        <Button
          key={verb}
          kind={verb === 'delete' ? 'danger' : 'primary'}
          small
          onClick={() => (verb === 'delete' ? setDeleting(true) : press(verb))}
        >
          {LABELS[verb]}
        </Button>
      ))}
      <Button small onClick={selection.clear}>
        Clear
      </Button>
      {deleting && (
        <FormDialog
          title={`Delete ${plural(selection.ids.length, 'task')}?`}
          does="Delete"
          danger
          onSubmit={() => act('delete')}
          onClose={() => setDeleting(false)}
        >
          <p>{WARNINGS.delete}</p>
        </FormDialog>
      )}
    </div>
  );
}

interface AllProps {
  place: Place;
  /** Undefined: not known. */
  size: number | undefined;
  onDone: () => void;
}

/** Acts on all tasks in the state, on this page or not; asks first. */
export function AllActions({ place, size, onDone }: AllProps) {
  const verbs = useVerbs(place);
  const [asked, setAsked] = useState<Verb>();
  if (size === 0 || verbs.length === 0) return null;
  const where = place.group === undefined ? '' : ` of group “${visible(place.group)}”`;
  const act = async (verb: Verb): Promise<void> => {
    tell(allResult(verb, await api.all(place, verb)));
    onDone();
    refreshLive();
  };
  return (
    <div class="all-actions">
      <span class="faint">all {place.state}:</span>
      {verbs.map((verb) => (
        <Button key={verb} small onClick={() => setAsked(verb)} label={`${LABELS[verb]}: all ${place.state} tasks`}>
          {LABELS[verb]}
        </Button>
      ))}
      {asked && (
        <FormDialog
          title={`${LABELS[asked]}: all ${size === undefined ? '' : `${count(size)} `}${place.state} tasks?`}
          does={`${LABELS[asked]} all`}
          danger={asked === 'delete'}
          onSubmit={() => act(asked)}
          onClose={() => setAsked(undefined)}
        >
          <p>
            All {place.state} tasks of queue <b>{visible(place.queue)}</b>
            {where}, also those on other pages. {WARNINGS[asked]}
          </p>
        </FormDialog>
      )}
    </div>
  );
}
