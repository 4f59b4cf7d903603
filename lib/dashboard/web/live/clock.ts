import { useEffect } from 'preact/hooks';
import { Store, useStore } from '../store.js';
import { serverNow } from './live.js';

const second = new Store(serverNow());
let watchers = 0;
let timer: number | undefined;

function start(): () => void {
  if (watchers++ === 0) timer = window.setInterval(() => void (document.hidden || second.set(serverNow())), 1000);
  return () => {
    if (--watchers === 0) window.clearInterval(timer);
  };
}

/** The server's time in milliseconds; renders again every second while the tab is visible. */
export function useNow(): number {
  useEffect(start, []);
  return useStore(second);
}
