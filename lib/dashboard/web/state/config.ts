import type { Config, Role } from '../api/types.js';
import { reaches, reachesSomewhere, roleIn } from './roles.js';
import { Store, useStore } from '../store.js';

export const config = new Store<Config | undefined>(undefined);

/** Whether who looks at the page may do what needs this role in a queue; without one, in any queue there may be. */
export function useMay(): (role: Role, queue?: string) => boolean {
  const current = useStore(config);
  return (role, queue) => {
    if (current === undefined || (role !== 'view' && current.read_only)) return false;
    return queue === undefined ? reachesSomewhere(current, role) : reaches(roleIn(current, queue), role);
  };
}

/** Whether the state of Redis may be seen: that belongs to no queue, and is no change that a read-only console refuses. */
export function useMaySeeRedis(): boolean {
  const current = useStore(config);
  return current !== undefined && reaches(current.role, 'act');
}

/** Milliseconds: a number of the intervals in which the server has news. */
export const useRefreshInterval = (intervals: number): number =>
  useStore(config, (current) => current?.refresh_ms ?? 2000) * intervals;
