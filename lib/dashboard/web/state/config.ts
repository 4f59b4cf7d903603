import type { Config, Role } from '../api/types.js';
import { Store, useStore } from '../store.js';
import { reaches, reachesSomewhere, roleIn } from './roles.js';

export const config = new Store<Config | undefined>(undefined);

/** Whether the user has this role in a queue; without a queue, in any queue that may exist. */
export function useMay(): (role: Role, queue?: string) => boolean {
  const current = useStore(config);
  return (role, queue) => {
    if (current === undefined || (role !== 'view' && current.read_only)) return false;
    return queue === undefined ? reachesSomewhere(current, role) : reaches(roleIn(current, queue), role);
  };
}

/**
 * Whether the user may see the state of Redis. That belongs to no queue, and a read-only console
 * allows it.
 */
export function useMaySeeRedis(): boolean {
  const current = useStore(config);
  return current !== undefined && reaches(current.role, 'act');
}

/** Whether there is an outbox that the user may see. It belongs to no queue. */
export function useHasOutbox(): boolean {
  const current = useStore(config);
  return current !== undefined && current.outbox && reaches(current.role, 'view');
}

/** The server's refresh interval times `intervals`, in milliseconds. */
export const useRefreshInterval = (intervals: number): number =>
  useStore(config, (current) => current?.refresh_ms ?? 2000) * intervals;
