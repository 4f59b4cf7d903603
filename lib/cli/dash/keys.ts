import { pressActionKey } from './action-keys.js';
import { type Model, type Prompt, viewOf } from './model.js';
import { applyFilter, back, move, open, openLinked, type Move } from './navigation.js';
import { withStatus, type Transition } from './transition.js';

/** The move of each key. */
const MOVES: Readonly<Record<string, Move>> = {
  up: 'up',
  k: 'up',
  down: 'down',
  j: 'down',
  pageup: 'screenUp',
  'ctrl-b': 'screenUp',
  pagedown: 'screenDown',
  'ctrl-f': 'screenDown',
  home: 'first',
  g: 'first',
  end: 'last',
  G: 'last',
};

/** The lines of the help. */
export const HELP: readonly (readonly [keys: string, meaning: string])[] = [
  ['↑ ↓  k j', 'one row up, down'],
  ['PgUp PgDn', 'one page up, down'],
  ['g G', 'to the first, the last'],
  ['Enter → l', 'open'],
  ['Esc ← h Backspace', 'back'],
  ['/', 'filter: names by text; tasks by the start of the type, or'],
  ['', 'id=… payload=… error=… type=…'],
  ['r', 'read again, now'],
  ['Space', 'mark a task; actions apply to all marked tasks'],
  ['*', 'mark all on this page, or none'],
  ['R', 'run now'],
  ['A', 'archive'],
  ['D', 'delete (asks)'],
  ['C', 'cancel an active task'],
  ['P', 'pause the queue, or end its pause'],
  ['w b', 'workflows, batches: those of the queue, or of all'],
  ['q', 'quit'],
];

/** @param key a character, or the name of a key: `up`, `enter`, `ctrl-c` … */
export function pressKey(model: Model, key: string): Transition {
  if (key === 'ctrl-c') return { model, end: 'interrupt' };
  if (model.help) return { model: { ...model, help: false } };
  if (model.prompt?.kind === 'confirm') return answerPrompt(model, model.prompt, key);
  if (model.prompt?.kind === 'filter') return typeFilter(model, model.prompt.text, key);
  const direction = MOVES[key];
  if (direction) return { model: move(model, direction) };
  return pressOther(model, key);
}

function pressOther(model: Model, key: string): Transition {
  switch (key) {
    case 'q':
      return { model, end: 'quit' };
    case '?':
      return { model: { ...model, help: true } };
    case 'r':
      return { model, reload: true };
    case 'enter':
    case 'right':
    case 'l':
      return { model: open(model) };
    case 'escape':
    case 'left':
    case 'h':
    case 'backspace':
      return { model: back(model) };
    case 'w':
      return { model: openLinked(model, 'runs') };
    case 'b':
      return { model: openLinked(model, 'batches') };
    case '/':
      return { model: startFilter(model) };
    default:
      return pressActionKey(model, key);
  }
}

function answerPrompt(model: Model, { request }: Extract<Prompt, { kind: 'confirm' }>, key: string): Transition {
  const answered = { ...model, prompt: undefined };
  if (key === 'y' || key === 'Y') return { model: { ...answered, busy: true }, request };
  if (['n', 'N', 'q', 'escape'].includes(key)) return { model: withStatus(answered, 'Nothing was done.', true) };
  return { model };
}

function startFilter(model: Model): Model {
  const view = viewOf(model);
  if ('filter' in view) return { ...model, prompt: { kind: 'filter', text: view.filter } };
  return withStatus(model, 'There is nothing to filter here.');
}

function typeFilter(model: Model, text: string, key: string): Transition {
  const typed = (more: string): Transition => ({ model: { ...model, prompt: { kind: 'filter', text: more } } });
  const closed = { ...model, prompt: undefined };
  if (key === 'escape') return { model: closed };
  if (key === 'enter') return { model: applyFilter(closed, text.trim()) };
  if (key === 'backspace') return typed([...text].slice(0, -1).join(''));
  if (key === 'ctrl-u') return typed('');
  if (key === 'space') return typed(`${text} `);
  return [...key].length === 1 ? typed(text + key) : { model };
}
