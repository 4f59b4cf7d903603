import type { IncomingHttpHeaders } from 'node:http';
import { InvalidOptionError } from '../errors.js';
import { describe, nearest } from '../validation.js';
import { openDashboard } from './dashboard.messages.js';
import { DASHBOARD_ROLES, type DashboardPermission, isRole, Permissions } from './permissions.js';

/** What the requests of Express and Fastify have in common; `user` if a guard has set one. */
export interface DashboardRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  readonly user?: unknown;
}

/**
 * What everyone may do, or a function of the request, called after the guards. Its parameter may
 * have the platform's type, or `DashboardRequest & { user?: User }`. It returns a role, roles by
 * queue, or `undefined` for no access.
 */
export type DashboardAccess =
  | DashboardPermission
  // A method, so that a function of a narrower request type is assignable.
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
 * Closed by default: `guards` or `access` must decide who may come in. Only NODE_ENV=development
 * opens the console without them, so that a forgotten option fails in tests and CI before it
 * reaches production.
 *
 * @returns whether it is open to everyone, because of the environment
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

/**
 * The permissions of the sender; `undefined`: none.
 *
 * @throws TypeError when the function returns anything else
 */
export async function permissionsOf(
  access: DashboardAccess | undefined,
  request: unknown,
): Promise<Permissions | undefined> {
  const given: unknown = typeof access === 'function' ? await access(request as never) : (access ?? 'destroy');
  if (given === undefined || given === null || given === false) return undefined;
  if (!isRole(given) && typeof given !== 'object') {
    throw new TypeError(`the dashboard's option access returned ${describe(given)}, which is not a role`);
  }
  const permissions = Permissions.of(given, "what the dashboard's option access returned", TypeError);
  return permissions.greatest === undefined ? undefined : permissions;
}
