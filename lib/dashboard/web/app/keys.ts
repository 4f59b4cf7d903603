import { paths } from '../state/router.js';
import { Store } from '../store.js';

export const helpOpen = new Store(false);

/** The key that follows `g`. */
export const TARGETS: Readonly<Record<string, () => string>> = {
  o: paths.overview,
  q: paths.overview,
  s: paths.servers,
  c: paths.schedules,
  w: paths.workflows,
  b: paths.batches,
  u: paths.outbox,
  a: paths.audit,
  r: paths.redis,
  h: paths.history,
  e: paths.enqueue,
};

/** The key that opens a page, after `g`. */
export const keyOf = (href: string): string | undefined => Object.keys(TARGETS).find((key) => TARGETS[key]!() === href);

const typesText = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement && (target.isContentEditable || /^(input|textarea|select)$/i.test(target.tagName));

const isCheckbox = (target: EventTarget | null): boolean =>
  target instanceof HTMLInputElement && target.type === 'checkbox';

const rows = (): HTMLElement[] => [...document.querySelectorAll<HTMLElement>('[data-row]')];

/** Moves the focus to the next or previous row, or, from outside, to the first or last. */
function step(by: 1 | -1): void {
  const all = rows();
  const at = all.findIndex((row) => row.contains(document.activeElement));
  const next = at < 0 ? (by === 1 ? 0 : all.length - 1) : Math.min(all.length - 1, Math.max(0, at + by));
  const row = all[next];
  (row?.querySelector<HTMLElement>('[data-open]') ?? row)?.focus();
  row?.scrollIntoView({ block: 'nearest' });
}

const press = (selector: string, within: ParentNode = document): void =>
  within.querySelector<HTMLElement>(selector)?.click();

export const KEYS: Readonly<Record<string, () => void>> = {
  '/': () => document.querySelector<HTMLElement>('[data-search]')?.focus(),
  '?': () => helpOpen.set(true),
  j: () => step(1),
  k: () => step(-1),
  x: () => {
    const row = rows().find((candidate) => candidate.contains(document.activeElement));
    if (row) press('input[type=checkbox]', row);
  },
  n: () => press('[data-next]'),
  p: () => press('[data-prev]'),
};

/** Listens for the keys of the console. Ignores letters in a text field or with a modifier. */
export function listenToKeys(): () => void {
  let afterG = false;
  const listen = (event: KeyboardEvent): void => {
    if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector('dialog[open]')) return;
    if (typesText(event.target) && !isCheckbox(event.target)) {
      if (event.key === 'Escape') (event.target as HTMLElement).blur();
      return;
    }
    const act = afterG ? go(event.key) : KEYS[event.key];
    afterG = !afterG && event.key === 'g';
    if (!act) return;
    event.preventDefault();
    act();
  };
  document.addEventListener('keydown', listen);
  return () => document.removeEventListener('keydown', listen);
}

function go(key: string): (() => void) | undefined {
  const target = TARGETS[key];
  return target && (() => void (location.hash = target()));
}
