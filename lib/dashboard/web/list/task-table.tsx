import { useState } from 'preact/hooks';
import { api, type BulkAction, type ListScope } from '../api/endpoints.js';
import type { ListedTask, TaskList } from '../api/task-types.js';
import { perform } from '../live/perform.js';
import { useMay } from '../state/config.js';
import { paths } from '../state/router.js';
import { bytes } from '../text/format.js';
import { visible } from '../text/visible.js';
import { Text } from '../ui/text.js';
import { useBulkActions } from './action-bars.js';
import { COLUMNS } from './columns.js';
import { type Asked, RowActions, RowDialog } from './row-actions.js';
import type { Selection } from './selection.js';

interface TaskTableProps {
  tasks: readonly ListedTask[];
  scope: ListScope;
  selection: Selection;
  /** Called after an action on one task. */
  onDone: () => void;
  dim?: boolean;
}

function Payload({ task }: { task: ListedTask }) {
  if (task.payload_size === 0) return <span class="none">empty</span>;
  return (
    <>
      <Text value={task.payload.slice(0, 300)} class="cut mono" />
      {task.redacted && <span class="flag">redacted</span>}
      {task.payload_cut && <span class="faint nowrap"> {bytes(task.payload_size)}</span>}
    </>
  );
}

interface RowProps extends TaskTableProps {
  task: ListedTask;
  selectable: boolean;
  actions: readonly BulkAction[];
  onAsk: (asked: Asked) => void;
}

function Row({ task, scope, selection, selectable, actions, onAsk, onDone }: RowProps) {
  const selected = selection.has(task.id);
  return (
    <tr data-row aria-selected={selectable ? selected : undefined} class={selected ? 'selected' : ''}>
      {selectable && (
        <td class="pick">
          <input
            type="checkbox"
            checked={selected}
            aria-label={`Select task ${visible(task.id)}`}
            onChange={() => selection.toggle(task.id)}
          />
        </td>
      )}
      <th scope="row" class="task">
        <a href={paths.task(task.queue, task.id)} data-open>
          <Text value={task.type} titled class="cut" />
          <Text value={task.id} titled class="cut mono id" />
        </a>
      </th>
      <td class="payload" data-label="payload">
        <Payload task={task} />
      </td>
      {COLUMNS[scope.state].map(({ name, number, wide, cell }) => (
        <td key={name} class={`${number ? 'number ' : ''}${wide ? 'wide' : ''}`} data-label={name}>
          {cell(task)}
        </td>
      ))}
      {actions.length > 0 && <RowActions task={task} actions={actions} onAsk={onAsk} onDone={onDone} />}
    </tr>
  );
}

function Head({ tasks, scope, selection, selectable, actions }: Omit<RowProps, 'task' | 'onAsk'>) {
  const all = selection.ids.length === tasks.length && tasks.length > 0;
  return (
    <thead>
      <tr>
        {selectable && (
          <th scope="col" class="pick">
            <input
              type="checkbox"
              checked={all}
              indeterminate={!all && selection.ids.length > 0}
              aria-label="Select all on this page"
              onChange={selection.toggleAll}
            />
          </th>
        )}
        <th scope="col">task</th>
        <th scope="col">payload</th>
        {COLUMNS[scope.state].map(({ name, number }) => (
          <th key={name} scope="col" class={number ? 'number' : ''}>
            {name}
          </th>
        ))}
        {actions.length > 0 && (
          <th scope="col" class="acts">
            <span class="sr-only">actions</span>
          </th>
        )}
      </tr>
    </thead>
  );
}

export function TaskTable(props: TaskTableProps) {
  const may = useMay();
  const selectable = may('act') || may('destroy');
  const actions = useBulkActions(props.scope);
  const [asked, setAsked] = useState<Asked>();
  return (
    <div class={`table-card${props.dim ? ' dim' : ''}`}>
      <table class="grid-table cards tasks">
        <Head {...props} selectable={selectable} actions={actions} />
        <tbody>
          {props.tasks.map((task) => (
            <Row key={task.id} {...props} task={task} selectable={selectable} actions={actions} onAsk={setAsked} />
          ))}
        </tbody>
      </table>
      {asked && <RowDialog asked={asked} onDone={props.onDone} onClose={() => setAsked(undefined)} />}
    </div>
  );
}

interface DamagedProps {
  queue: string;
  entries: TaskList['damaged'];
  onDone: () => void;
}

/** Entries of the list that have no readable task. */
export function Damaged({ queue, entries, onDone }: DamagedProps) {
  const may = useMay();
  const remove = async (id: string): Promise<void> => {
    if (await perform(`Entry “${visible(id)}” is deleted.`, () => api.removeDamaged(queue, id))) onDone();
  };
  if (entries.length === 0) return null;
  return (
    <section class="card damaged">
      <header>
        <h2>Cannot be read ({entries.length})</h2>
      </header>
      <ul>
        {entries.map(({ id, error }) => (
          <li key={id}>
            <div>
              <Text value={id} class="mono" />
              <p class="problem-text">
                <Text value={error} />
              </p>
            </div>
            {may('destroy', queue) && (
              <button type="button" class="button plain small" onClick={() => void remove(id)}>
                Delete
                <span class="sr-only"> {visible(id)}</span>
              </button>
            )}
          </li>
        ))}
      </ul>
    </section>
  );
}
