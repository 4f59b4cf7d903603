import { bars } from './bars.js';
import { GROUP_COLUMNS, QUEUE_COLUMNS, STATE_COLUMNS, taskColumns } from './columns.js';
import { type GridColumn, layOut, rowLine } from './grid.js';
import { HELP } from './keys.js';
import { batchColumns, runColumns, STEP_COLUMNS } from './link-columns.js';
import {
  bodyHeight,
  type GroupsView,
  idsOf,
  listHeight,
  type Model,
  queuesOf,
  type QueueView,
  stepsOf,
  type View,
  viewOf,
} from './model.js';
import { aboutQueue, statesOf } from './queue-text.js';
import { type Line, lineOf, paint, type Segment } from './styled-line.js';
import { taskLines } from './task-text.js';

/** The lines of the screen, for the size in the model. */
export function render(model: Model, colors: boolean): string[] {
  const height = bodyHeight(model);
  const body = model.help ? helpLines() : bodyOf(model);
  const { header, failure, status, footer } = bars(model);
  const blank = Array.from({ length: Math.max(0, height - body.length) }, () => lineOf(''));
  const lines = [header, ...body.slice(0, height), ...blank, ...failure, status, footer];
  return lines.slice(0, model.rows).map((line) => paint(line, model.columns, colors));
}

function helpLines(): Line[] {
  const lines = HELP.map(([keys, meaning]) => ({
    segments: [{ text: `  ${keys.padEnd(20)}`, style: 'key' as const }, { text: meaning }],
  }));
  return [lineOf('Keys', 'title'), ...lines];
}

function bodyOf(model: Model): Line[] {
  const view = viewOf(model);
  if (view.kind === 'task') {
    return taskLines(view.task, model.columns, model.now).slice(view.scroll, view.scroll + bodyHeight(model));
  }
  if (view.readAt === undefined && !(view.kind === 'queue' && view.info)) return [lineOf('  reading …', 'dim')];
  if (idsOf(view).length === 0) return [lineOf(`  ${emptiness(view)}`, 'dim')];
  return listOf(model, view);
}

type ListView = Exclude<View, { kind: 'task' }>;

function listOf(model: Model, view: ListView): Line[] {
  switch (view.kind) {
    case 'queues': {
      const rows = queuesOf(view).map((name) => ({ name, info: view.infos.get(name) }));
      return listLines(model, view, QUEUE_COLUMNS, rows);
    }
    case 'queue':
      return queueLines(model, view);
    case 'groups':
      return listLines(model, view, GROUP_COLUMNS, groupsOf(view));
    case 'tasks':
      return listLines(model, view, taskColumns(view.location.state, model.now), view.rows);
    case 'runs':
      return listLines(model, view, runColumns(model.now), view.runs);
    case 'batches':
      return listLines(model, view, batchColumns(model.now), view.batches);
    case 'run':
      return listLines(model, view, STEP_COLUMNS, stepsOf(view));
  }
}

function groupsOf(view: GroupsView): GroupsView['groups'] {
  const shown = new Set(idsOf(view));
  return view.groups.filter(({ group }) => shown.has(group));
}

/** The states of a queue, and as much of its other figures as there is room for. */
function queueLines(model: Model, view: QueueView): Line[] {
  const list = listLines(model, view, STATE_COLUMNS, statesOf(view));
  return view.info ? [...list, ...aboutQueue(view.info, view.days)] : list;
}

function listLines<Row>(
  model: Model,
  view: ListView,
  columns: readonly GridColumn<Row>[],
  all: readonly Row[],
): Line[] {
  const { top, index, lost } = view.list;
  const ids = idsOf(view).slice(top, top + listHeight(model));
  const { head, rows } = layOut(columns, all.slice(top, top + ids.length), model.columns - 2);
  const marked = view.kind === 'tasks' ? view.marked : undefined;
  const lines = rows.map((segments, at) =>
    rowLine(segments, !lost && top + at === index, marked?.has(ids[at]!) ?? false),
  );
  return [{ segments: [{ text: '  ' } satisfies Segment, ...head] }, ...lines];
}

function emptiness(view: ListView): string {
  if ('filter' in view && view.filter !== '') return 'Nothing matches the filter. Esc removes it.';
  switch (view.kind) {
    case 'tasks':
      return view.trail.length > 1 ? 'There are no more.' : `No ${view.location.state} tasks.`;
    case 'groups':
      return 'No tasks are waiting in groups.';
    case 'runs':
      return 'No runs of workflows.';
    case 'batches':
      return 'No batches.';
    case 'run':
      return 'The run was deleted.';
    default:
      return 'There are no queues: nothing was ever enqueued here.';
  }
}
