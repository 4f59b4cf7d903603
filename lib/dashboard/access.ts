import type { IncomingHttpHeaders } from 'node:http';
import { InvalidOptionError } from '../errors.js';
import { describe, nearest } from '../validation.js';
import { openDashboard } from './dashboard.messages.js';

/** From the least to the most. */
export const DASHBOARD_ROLES = ['view', 'act', 'destroy'] as const;

/** `view`: look. `act`: also pause, run, archive, cancel, reschedule, edit, clone, enqueue. `destroy`: also delete. */
export type DashboardRole = (typeof DASHBOARD_ROLES)[number];

/** What Express' and Fastify's requests have in common; `user` where guards have put one there. */
export interface DashboardRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  readonly user?: unknown;
}

/**
 * A role for everybody, or a function that is asked about each request, after the guards. Its parameter can be given the platform's type, or
 * `DashboardRequest & { user?: User }`.
 */
export type DashboardAccess =
  | DashboardRole
  // As a method, so that a function of a narrower request fits.
  | { answer(request: DashboardRequest): DashboardRole | undefined | Promise<DashboardRole | undefined> }['answer'];

const isRole = (value: unknown): value is DashboardRole => DASHBOARD_ROLES.some((role) => role === value);

export const mayDo = (has: DashboardRole, needed: DashboardRole): boolean =>
  DASHBOARD_ROLES.indexOf(has) >= DASHBOARD_ROLES.indexOf(needed);

/** @throws InvalidOptionError */
export function checkAccess(access: unknown): DashboardAccess {
  if (isRole(access)) return access;
  if (typeof access === 'function') return access as DashboardAccess;
  const near = typeof access === 'string' ? nearest(access, DASHBOARD_ROLES) : undefined;
  const remedy = near ? `did you mean "${near}"?` : 'it must be "view", "act", "destroy", or a function of the request';
  throw new InvalidOptionError(`AsynqDashboardModule option access is ${describe(access)}; ${remedy}`);
}

/**
 * Closed by default: somebody must have said who may come in. Only NODE_ENV=development, said in so many words, opens it: whoever
 * forgets both learns of it in his tests and in CI, before production does.
 *
 * @returns whether it is open to everyone, because of the environment alone
 * @throws InvalidOptionError
 */
export function requireClosed(
  path: string,
  guards: readonly unknown[],
  access: DashboardAccess | undefined,
  environment: string | undefined,
): boolean {
  if (access !== undefined || guards.length > 0) return false;
  if (environment === 'development') return true;
  throw new InvalidOptionError(openDashboard(path, environment));
}

/** What the sender of a request may do; `undefined`: nothing. @throws TypeError when the function answers no role */
export async function roleOf(
  access: DashboardAccess | undefined,
  request: unknown,
): Promise<DashboardRole | undefined> {
  if (typeof access !== 'function') return access ?? 'destroy';
  const role: unknown = await access(request as never);
  if (role === undefined || role === null || role === false) return undefined;
  if (isRole(role)) return role;
  throw new TypeError(`the dashboard's option access answered ${describe(role)}, which is no role`);
}
