import { useEffect, useState } from 'preact/hooks';

/** A value that components watch. */
export class Store<T> {
  private readonly watchers = new Set<() => void>();

  constructor(private current: T) {}

  get(): T {
    return this.current;
  }

  set(value: T): void {
    if (Object.is(value, this.current)) return;
    this.current = value;
    for (const watcher of this.watchers) watcher();
  }

  update(change: (value: T) => T): void {
    this.set(change(this.current));
  }

  watch(watcher: () => void): () => void {
    this.watchers.add(watcher);
    return () => void this.watchers.delete(watcher);
  }
}

/** The store's value, or a part of it; renders again when that part changes. */
export function useStore<T, P = T>(store: Store<T>, part: (value: T) => P = (value) => value as unknown as P): P {
  const [, render] = useState(0);
  const value = part(store.get());
  useEffect(() => {
    let last = part(store.get());
    if (!Object.is(last, value)) render((n) => n + 1);
    return store.watch(() => {
      const next = part(store.get());
      if (Object.is(next, last)) return;
      last = next;
      render((n) => n + 1);
    });
    // `part` must depend on the store's value only, so a new closure needs no new watcher.
  }, [store]);
  return value;
}
