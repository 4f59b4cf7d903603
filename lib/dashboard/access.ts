import type { IncomingHttpHeaders } from 'node:http';
import { InvalidOptionError } from '../errors.js';
import { describe, nearest } from '../validation.js';
import { openDashboard } from './dashboard.messages.js';
import { DASHBOARD_ROLES, type DashboardPermission, isRole, Permissions } from './permissions.js';

/** What Express' and Fastify's requests have in common; `user` where guards have put one there. */
export interface DashboardRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  readonly user?: unknown;
}

/**
 * What everybody may do, or a function that is asked about each request, after the guards. Its parameter can be given the platform's type,
 * or `DashboardRequest & { user?: User }`. It returns a role, roles by queue, or `undefined` for nothing.
 */
export type DashboardAccess =
  | DashboardPermission
  // As a method, so that a function of a narrower request fits.
  | {
      answer(request: DashboardRequest): DashboardPermission | undefined | Promise<DashboardPermission | undefined>;
    }['answer'];

const OPTION = 'AsynqDashboardModule option access';

/** @throws InvalidOptionError */
export function checkAccess(access: unknown): DashboardAccess {
  if (isRole(access)) return access;
  if (typeof access === 'function') return access as DashboardAccess;
  if (typeof access === 'object' && access !== null) {
    Permissions.of(access, OPTION, InvalidOptionError);
    return access as DashboardPermission;
  }
  const near = typeof access === 'string' ? nearest(access, DASHBOARD_ROLES) : undefined;
  const remedy = near
    ? `did you mean "${near}"?`
    : 'it must be "view", "act", "destroy", roles by queue ({ queues, default }), or a function of the request';
  throw new InvalidOptionError(`${OPTION} is ${describe(access)}; ${remedy}`);
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

/** What the sender of a request may do; `undefined`: nothing. @throws TypeError when the function returns something else */
export async function permissionsOf(
  access: DashboardAccess | undefined,
  request: unknown,
): Promise<Permissions | undefined> {
  const given: unknown = typeof access === 'function' ? await access(request as never) : (access ?? 'destroy');
  if (given === undefined || given === null || given === false) return undefined;
  if (!isRole(given) && typeof given !== 'object') {
    throw new TypeError(`the dashboard's option access returned ${describe(given)}, which is no role`);
  }
  const permissions = Permissions.of(given, "what the dashboard's option access returned", TypeError);
  return permissions.greatest === undefined ? undefined : permissions;
}
