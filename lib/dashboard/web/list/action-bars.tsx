import { useState } from 'preact/hooks';
import { api, type ListScope, type BulkAction } from '../api/endpoints.js';
import { refreshLive } from '../live/live.js';
import { useMay } from '../state/config.js';
import { messageOf } from '../text/errors.js';
import { count, plural } from '../text/format.js';
import { visible } from '../text/visible.js';
import { Button } from '../ui/button.js';
import { FormDialog } from '../ui/dialog.js';
import { notify } from '../ui/notices.js';
import { type Batch, sendBatch } from './batches.js';
import { allResult, batchResult, LABELS, REQUIRED_ROLES, bulkActionsFor, WARNINGS } from './bulk-actions.js';
import type { Selection } from './selection.js';

interface ActionsProps {
  scope: ListScope;
  selection: Selection;
  onDone: () => void;
}

async function batch(scope: ListScope, action: BulkAction, ids: readonly string[]): Promise<void> {
  const total: Batch = {};
  await sendBatch(scope, action, ids, total);
  const [text, failed] = batchResult(action, total);
  notify(text, { failed });
}

export function useBulkActions(scope: ListScope): readonly BulkAction[] {
  const may = useMay();
  return bulkActionsFor(scope.state).filter((action) => may(REQUIRED_ROLES[action], scope.queue));
}

let measuring: ResizeObserver | undefined;

/** Notices also appear at the bottom: this keeps them above the bar, whatever its height. */
function reserveSpace(bar: HTMLElement | null): void {
  const { style } = document.documentElement;
  measuring?.disconnect();
  style.removeProperty('--selection-bar');
  if (!bar) return;
  measuring = new ResizeObserver(() => style.setProperty('--selection-bar', `${bar.offsetHeight}px`));
  measuring.observe(bar);
}

/** The bar that appears when rows are selected. */
export function SelectionBar({ scope, selection, onDone }: ActionsProps) {
  const actions = useBulkActions(scope);
  const [deleting, setDeleting] = useState(false);
  const act = async (action: BulkAction): Promise<void> => {
    await batch(scope, action, selection.ids);
    selection.clear();
    onDone();
    refreshLive();
  };
  const press = (action: BulkAction): Promise<void> =>
    act(action).catch((error) => notify(messageOf(error), { failed: true }));
  if (selection.ids.length === 0) return null;
  return (
    <div class="selection-bar" role="toolbar" aria-label="Selected tasks" ref={reserveSpace}>
      <b>{plural(selection.ids.length, 'task')} selected</b>
      {actions.map((action) => (
        <Button
          key={action}
          kind={action === 'delete' ? 'danger' : 'primary'}
          small
          onClick={() => (action === 'delete' ? setDeleting(true) : press(action))}
        >
          {LABELS[action]}
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

interface ActionButtonsProps {
  actions: readonly BulkAction[];
  /** What each button acts on, for screen readers. */
  what: string;
  onPress: (action: BulkAction) => void;
}

/** A button per action, each of which asks for a confirmation. */
export const ActionButtons = ({ actions, what, onPress }: ActionButtonsProps) =>
  actions.map((action) => (
    <Button key={action} small onClick={() => onPress(action)} label={`${LABELS[action]}: ${what}`}>
      {LABELS[action]}
    </Button>
  ));

interface AllProps {
  scope: ListScope;
  /** Undefined: not known. */
  size: number | undefined;
  onDone: () => void;
}

/** Acts on all tasks in the state, including other pages, after a confirmation. */
export function AllActions({ scope, size, onDone }: AllProps) {
  const actions = useBulkActions(scope);
  const [asked, setAsked] = useState<BulkAction>();
  if (size === 0 || actions.length === 0) return null;
  const where = scope.group === undefined ? '' : ` of group “${visible(scope.group)}”`;
  const act = async (action: BulkAction): Promise<void> => {
    notify(allResult(action, await api.all(scope, action)));
    onDone();
    refreshLive();
  };
  return (
    <div class="all-actions">
      <span class="faint">all {scope.state}:</span>
      <ActionButtons actions={actions} what={`all ${scope.state} tasks`} onPress={setAsked} />
      {asked && (
        <FormDialog
          title={`${LABELS[asked]}: all ${size === undefined ? '' : `${count(size)} `}${scope.state} tasks?`}
          does={`${LABELS[asked]} all`}
          danger={asked === 'delete'}
          onSubmit={() => act(asked)}
          onClose={() => setAsked(undefined)}
        >
          <p>
            All {scope.state} tasks of queue <b>{visible(scope.queue)}</b>
            {where}, also those on other pages. {WARNINGS[asked]}
          </p>
        </FormDialog>
      )}
    </div>
  );
}
