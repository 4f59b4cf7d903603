import { mayDo, roleOf, type DashboardRole } from '../access.js';
import type { Dashboard } from '../dashboard.js';
import { crossOrigin, forbidden, foreignHost, readOnlyMode } from '../dashboard.messages.js';
import { ApiError } from './api-error.js';
import { foreignSource, isTrustedHost, isUnownedHost, requestedHost } from './cross-origin.js';
import { type HttpRequest, pathOf, queryOf, segmentsOf } from './http-request.js';
import { openApiRoute } from './openapi.js';
import { readBody } from './read-body.js';
import { json, type Outgoing } from './responder.js';
import { type Call, isCached, type Method, roleFor, type Route, statusOf } from './route.js';
import { type Match, Router } from './router.js';
import { routes, schemas } from './table.js';

const router = new Router([...routes, openApiRoute(routes, schemas)]);

/** @throws ApiError when its sender may not even look */
export async function requireRole({ settings }: Dashboard, request: HttpRequest): Promise<DashboardRole> {
  const role = await roleOf(settings.access, request);
  if (role === undefined) throw new ApiError('FORBIDDEN', forbidden('view', undefined));
  return role;
}

/** @throws ApiError where only the network keeps others out, and a page of another site may stand behind the name that was asked for */
export function requireOwnHost({ isOpen, settings }: Dashboard, { headers }: HttpRequest): void {
  if (!isOpen) return;
  const host = requestedHost(headers) ?? '';
  if (isUnownedHost(host) || isTrustedHost(host, settings.trustedOrigins)) return;
  throw new ApiError('CROSS_ORIGIN', foreignHost(host));
}

/** @throws ApiError when a page of another site had it sent */
export function requireOwnSite(dashboard: Dashboard, request: HttpRequest): void {
  requireOwnHost(dashboard, request);
  const { settings } = dashboard;
  const reads = request.method === 'GET' || request.method === 'HEAD';
  const source = foreignSource(request.headers, reads, settings.trustedOrigins);
  if (source !== undefined) throw new ApiError('CROSS_ORIGIN', crossOrigin(source));
}

/** One request to the API, after the guards: who is it, may he, what does he want, do it. */
export async function dispatch(dashboard: Dashboard, method: Method, request: HttpRequest): Promise<Outgoing> {
  requireOwnSite(dashboard, request);
  const role = await requireRole(dashboard, request);
  if (method !== 'GET' && dashboard.settings.readOnly) throw new ApiError('READ_ONLY', readOnlyMode(method));
  const { route, params } = find(method, request);
  if (!mayDo(role, roleFor(route))) throw new ApiError('FORBIDDEN', forbidden(roleFor(route), role));
  const body = readBody(route, request);
  const call: Call = { params, query: queryOf(request.originalUrl), body, role, url: pathOf(request.originalUrl) };
  return { status: statusOf(route), ...(await answer(dashboard, route, call)) };
}

function find(method: Method, request: HttpRequest): Match {
  const path = segmentsOf(request);
  const match = path && router.match(method, path);
  if (match) return match;
  const where = path && router.knows(path) ? `${method} is not for` : 'there is nothing at';
  throw new ApiError('NOT_FOUND', `${where} this path; openapi.json lists what there is`);
}

async function answer(dashboard: Dashboard, route: Route, call: Call): Promise<Pick<Outgoing, 'headers' | 'body'>> {
  if (route.method === 'GET') return json(await read(dashboard, route, call));
  try {
    const value = await route.handle(dashboard, call);
    return route.reply ? json(value) : {};
  } finally {
    dashboard.cache.clear();
  }
}

/** The same question of the same role has the same answer until the next refresh. */
function read(dashboard: Dashboard, route: Route, call: Call): unknown {
  if (!isCached(route, call)) return route.handle(dashboard, call);
  const query = [...call.query.entries()];
  const key = JSON.stringify([route.path, Object.values(call.params), query, call.role]);
  return dashboard.cache.get(key, async () => route.handle(dashboard, call));
}
