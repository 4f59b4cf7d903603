import type { Config, Role } from '../api/types.js';
import { Store, useStore } from './store.js';

export const config = new Store<Config | undefined>(undefined);

const RANK: Readonly<Record<Role, number>> = { view: 0, act: 1, destroy: 2 };

/** Whether who looks at the page may do what needs this role. */
export function useMay(): (role: Role) => boolean {
  const current = useStore(config);
  return (role) =>
    current !== undefined && (role === 'view' || (!current.read_only && RANK[current.role] >= RANK[role]));
}

/** Milliseconds: a number of the intervals in which the server has news. */
export const usePace = (intervals: number): number =>
  useStore(config, (current) => current?.refresh_ms ?? 2000) * intervals;
