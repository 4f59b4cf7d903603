import { Store } from '../store.js';

/** `auto` follows the system. */
export type Theme = 'auto' | 'light' | 'dark';

const KEY = 'asynq-console-theme';
const ORDER: readonly Theme[] = ['auto', 'light', 'dark'];

function stored(): Theme {
  try {
    const value = localStorage.getItem(KEY) as Theme;
    return ORDER.includes(value) ? value : 'auto';
  } catch {
    // Without storage the theme follows the system.
    return 'auto';
  }
}

export const theme = new Store<Theme>(stored());

export function applyTheme(): void {
  document.documentElement.dataset['theme'] = theme.get();
}

export function nextTheme(): void {
  theme.update((current) => ORDER[(ORDER.indexOf(current) + 1) % ORDER.length] ?? 'auto');
  applyTheme();
  try {
    localStorage.setItem(KEY, theme.get());
  } catch {
    // Without storage the choice lasts until the page is left.
  }
}
