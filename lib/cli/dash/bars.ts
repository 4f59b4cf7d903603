import { cut, plain, widthOf } from '../output/text.js';
import { PROGRAM } from '../output/words.js';
import { ACTION_KEYS } from './action-keys.js';
import { refusalOf } from './actions.js';
import { formatCount, formatSpan } from './format.js';
import { parseFilter } from './filter.js';
import { idsOf, type Model, totalOf, type TaskView, type View, viewOf } from './model.js';
import { type Line, lineOf, type Segment, type Style } from './styled-line.js';

interface Bars {
  readonly header: Line;
  /** Empty without a failure. */
  readonly failure: readonly Line[];
  readonly status: Line;
  readonly footer: Line;
}

/** The lines above and below the view. */
export function bars(model: Model): Bars {
  return {
    header: headerOf(model),
    failure: model.failure ? [lineOf(cut(`! ${plain(model.failure)}`, model.columns), 'bad')] : [],
    status: statusOf(model),
    footer: footerOf(model),
  };
}

/** The path to the view, and the age of its data. */
function headerOf(model: Model): Line {
  const right = ageOf(model);
  const view = viewOf(model);
  const isPaused = 'info' in view && view.info?.paused;
  const path = model.views.flatMap((one) => nameOf(one) ?? []).map(plain);
  if (isPaused) path[0] += ' (paused)';
  const all = [PROGRAM, ...path].join(' › ');
  const room = Math.max(1, model.columns - widthOf(right) - 3);
  // Without room for the whole path, its end matters most.
  const left = widthOf(all) <= room ? all : cut(path.join(' › ') || PROGRAM, room);
  return twoSided(model, ` ${left}`, `${right} `, { inverted: true });
}

function nameOf(view: View): string | undefined {
  switch (view.kind) {
    case 'queues':
      return undefined;
    case 'queue':
      return view.queue;
    case 'groups':
      return 'aggregating';
    case 'tasks':
      return view.location.group ?? view.location.state;
    case 'runs':
      return 'workflows';
    case 'batches':
      return 'batches';
    case 'run':
    case 'task':
      return view.id;
  }
}

function ageOf({ now, where, columns, failure, ...model }: Model): string {
  const { readAt } = model.views.at(-1)!;
  const age = readAt === undefined ? 'reading' : formatAge(now - readAt);
  const shown = failure && readAt !== undefined ? `as of ${age}` : age;
  return columns >= 70 ? `${plain(where)} · ${shown}` : shown;
}

const formatAge = (milliseconds: number): string =>
  milliseconds < 1000 ? 'now' : `${formatSpan(Math.floor(milliseconds / 1000) * 1000)} ago`;

/** The question, or the result of the last key; with room for it, also the position in the list. */
function statusOf(model: Model): Line {
  const { prompt, status, busy, columns } = model;
  if (prompt?.kind === 'confirm') return { segments: [{ text: ` ${plain(prompt.question)}`, style: 'warning' }] };
  if (prompt) return { segments: [{ text: ' / ', style: 'key' }, { text: `${endOf(prompt.text, columns - 5)}▏` }] };
  const right = model.help ? '' : positionOf(viewOf(model), model);
  if (busy) return twoSided(model, ' working …', right);
  const text = status ? ` ${plain(status.text)}` : '';
  const isTight = text !== '' && widthOf(text) + widthOf(right) + 2 > columns;
  return twoSided(model, text, isTight ? '' : right, { style: status?.good ? 'good' : 'warning' });
}

/** The end of a typed text, where the cursor is. */
function endOf(text: string, width: number): string {
  let end = plain(text);
  while (end !== '' && widthOf(end) > width) end = end.slice(1);
  return end;
}

function positionOf(view: View, model: Model): string {
  if (view.kind === 'task') return view.gone ? 'gone from the queue ' : '';
  const filter = 'filter' in view ? plain(cut(view.filter, Math.ceil(model.columns / 3))) : '';
  const parts = [filter && `/${filter}`, view.readAt === undefined ? '' : countOf(view)];
  if (view.kind === 'tasks' && view.marked.size > 0) parts.unshift(`${formatCount(view.marked.size)} marked`);
  return `${parts.filter((part) => part !== '').join(' · ')} `;
}

function countOf(view: Exclude<View, TaskView>): string {
  const count = idsOf(view).length;
  const here = count === 0 ? 0 : view.list.index + 1;
  if (view.kind !== 'tasks') return `${formatCount(here)} of ${formatCount(count)}`;
  if (parseFilter(view.filter)) {
    const more = view.cursor === undefined ? '' : ', more below';
    return `${formatCount(here)} of ${formatCount(count)} found in ${formatCount(view.scanned)}${more}`;
  }
  if (count === 0) return '';
  const before = view.trail.at(-1)!.first;
  const total = totalOf(view);
  if (total === undefined)
    return `${formatCount(before + here)} of ${formatCount(before + count)}${view.cursor ? '+' : ''}`;
  // There may be fewer tasks before this page than when it was opened.
  const first = Math.max(0, Math.min(before, total - count));
  return `${formatCount(first + here)} of ${formatCount(Math.max(total, count))}`;
}

type Hint = readonly [key: string, meaning: string];

const COMMON_HINTS = hints('? help, q quit');

const HINTS: Readonly<Record<View['kind'], readonly Hint[]>> = {
  queues: hints('Enter open, P pause, / filter, r refresh, w workflows, b batches'),
  queue: hints('Enter open, P pause, r refresh, w workflows, b batches'),
  groups: hints('Enter open, / filter, P pause'),
  tasks: hints('Enter open, Space mark, / filter, P pause'),
  task: hints('↑↓ scroll, P pause, r refresh'),
  runs: hints('Enter open, r refresh, b batches'),
  batches: hints('r refresh, w workflows'),
  run: hints('r refresh'),
};

/** The keys of this view. */
function footerOf(model: Model): Line {
  const { help, prompt, columns } = model;
  if (help) return hintLine(hints('any-key back'), columns);
  if (prompt) return hintLine(hints(prompt.kind === 'confirm' ? 'y yes, n no' : 'Enter apply, Esc leave'), columns);
  const view = viewOf(model);
  const back = view.kind === 'queues' ? [] : hints('Esc back');
  return hintLine([...COMMON_HINTS, ...back, ...actionsIn(view), ...HINTS[view.kind]], columns);
}

/** The actions that the state allows. */
function actionsIn(view: View): Hint[] {
  if (view.kind !== 'tasks' && view.kind !== 'task') return [];
  if (view.kind === 'task' && view.gone) return [];
  const state = view.kind === 'tasks' ? view.location.state : view.task.state;
  return Object.entries(ACTION_KEYS).flatMap(([key, action]) =>
    refusalOf(action, state) ? [] : [[key, action] as const],
  );
}

function hints(text: string): Hint[] {
  return text.split(', ').map((one) => one.split(' ') as [string, string]);
}

function hintLine(all: readonly Hint[], width: number): Line {
  const segments: Segment[] = [];
  let used = 0;
  for (const [key, meaning] of all) {
    used += widthOf(` ${key} ${meaning} `);
    if (used > width) break;
    segments.push({ text: ` ${key} `, style: 'key' }, { text: `${meaning} `, style: 'dim' });
  }
  return { segments };
}

function twoSided(model: Model, left: string, right: string, look: { style?: Style; inverted?: boolean } = {}): Line {
  const between = Math.max(1, model.columns - widthOf(left) - widthOf(right));
  const segments = [
    { text: left, style: look.style },
    { text: ' '.repeat(between) },
    { text: right, style: 'dim' as const },
  ];
  return { segments, inverted: look.inverted ?? false };
}
