import { Store } from '../store.js';

/** By address of the console: another console on the same host has other queues. */
const KEY = `asynq-console-favourites ${location.pathname}`;

function stored(): ReadonlySet<string> {
  try {
    const names: unknown = JSON.parse(localStorage.getItem(KEY) ?? '[]');
    return new Set(Array.isArray(names) ? names.filter((name) => typeof name === 'string') : []);
  } catch {
    // Without storage, or with what is no list in it, there are none.
    return new Set();
  }
}

/** The names of the user's favourite queues, kept in this browser. */
export const favourites = new Store(stored());

export function toggleFavourite(queue: string): void {
  const names = new Set(favourites.get());
  if (!names.delete(queue)) names.add(queue);
  favourites.set(names);
  try {
    localStorage.setItem(KEY, JSON.stringify([...names]));
  } catch {
    // Without storage the choice lasts until the page is left.
  }
}
