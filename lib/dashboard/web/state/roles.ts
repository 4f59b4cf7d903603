import type { Config, Role } from '../api/types.js';

type Roles = Pick<Config, 'role' | 'queue_roles'>;

const RANK: Readonly<Record<Role, number>> = { view: 0, act: 1, destroy: 2 };

export const reaches = (has: Role | null, needed: Role): boolean => has !== null && RANK[has] >= RANK[needed];

/**
 * An exact name wins over a prefix (`mail*`), and a longer prefix over a shorter one, as on the
 * server.
 */
export function roleIn({ role, queue_roles: roles }: Roles, queue: string): Role | null {
  if (Object.hasOwn(roles, queue) && !queue.endsWith('*')) return roles[queue]!;
  const beginnings = Object.keys(roles).filter((name) => name.endsWith('*') && queue.startsWith(name.slice(0, -1)));
  const longest = beginnings.sort((a, b) => b.length - a.length)[0];
  return longest === undefined ? role : roles[longest]!;
}

/** Whether the user may have this role in any queue. */
export const reachesSomewhere = ({ role, queue_roles: roles }: Roles, needed: Role): boolean =>
  [role, ...Object.values(roles)].some((has) => reaches(has, needed));

/** The queue a form starts with: `default`, or the first one in which the user may act. */
export function firstQueue(roles: Roles): string {
  if (reaches(roleIn(roles, 'default'), 'act')) return 'default';
  const names = Object.keys(roles.queue_roles).filter((name) => !name.endsWith('*'));
  return names.find((name) => reaches(roleIn(roles, name), 'act')) ?? '';
}
