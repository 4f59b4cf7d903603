import { permissionsOf } from '../access.js';
import { actionOf, targetOf, detailsOf, effectsOf } from '../audit/action-details.js';
import type { Recording } from '../audit/recorder.js';
import type { Dashboard } from '../dashboard.js';
import {
  crossOrigin,
  forbidden,
  forbiddenGenerally,
  foreignHost,
  notFromThisMachine,
  notMeant,
  readOnlyMode,
} from '../dashboard.messages.js';
import { type DashboardRole, mayDo, type Permissions } from '../permissions.js';
import { ApiError } from './api-error.js';
import { attachment, type Attachment } from './attachment.js';
import { browserTrait, foreignSource, isTrustedHost, isUnownedHost, requestedHost } from './cross-origin.js';
import { type HttpRequest, pathOf, queryOf, segmentsOf } from './http-request.js';
import { openApiRoute } from './openapi.js';
import { foreignPeer } from './peer.js';
import { canonicalQuery } from './query.js';
import { readBody } from './read-body.js';
import { requireRoleIn } from './require-role.js';
import { type Content, json, type Outgoing } from './responder.js';
import { type ApiRequest, isCached, type Method, roleFor, type Route, statusOf } from './route.js';
import { type Match, Router } from './router.js';
import { routes, schemas } from './table.js';

const router = new Router([...routes, openApiRoute(routes, schemas)]);
// A route that changes something but has no action in the trail fails at start, not at its first
// request.
for (const route of routes) if (route.method !== 'GET') actionOf(route);

/** @throws ApiError when the sender has no access */
export async function requirePermissions({ settings }: Dashboard, request: HttpRequest): Promise<Permissions> {
  const permissions = await permissionsOf(settings.access, request);
  if (permissions === undefined) throw new ApiError('FORBIDDEN', forbidden('view', undefined));
  return permissions;
}

/**
 * @returns the role in the queue of the path, or the highest role
 * @throws QueueNotFoundError, ApiError
 */
function requireRole(permissions: Permissions, route: Route, { queue }: Match['params']): DashboardRole {
  const needed = roleFor(route);
  if (queue !== undefined) return requireRoleIn(permissions, queue, needed);
  const role = route.scope === 'filtered' ? permissions.greatest : permissions.general;
  if (role === undefined) throw new ApiError('FORBIDDEN', forbiddenGenerally(needed));
  if (!mayDo(role, needed)) throw new ApiError('FORBIDDEN', forbidden(needed, role));
  return permissions.greatest!;
}

/**
 * @throws ApiError if the console is open to everyone, and the request comes from another machine
 * or uses a host name that another site may own
 */
export function requireOwnHost({ isOpen, settings }: Dashboard, request: HttpRequest): void {
  if (!isOpen) return;
  const peer = foreignPeer(request);
  if (peer !== undefined) throw new ApiError('FORBIDDEN', notFromThisMachine(peer));
  const host = requestedHost(request.headers) ?? '';
  if (isUnownedHost(host) || isTrustedHost(host, settings.trustedOrigins)) return;
  throw new ApiError('CROSS_ORIGIN', foreignHost(host));
}

/** @throws ApiError when a page of another site sent the request */
export function requireOwnSite(dashboard: Dashboard, request: HttpRequest): void {
  requireOwnHost(dashboard, request);
  const { settings } = dashboard;
  const reads = request.method === 'GET' || request.method === 'HEAD';
  const source = foreignSource(request.headers, reads, settings.trustedOrigins);
  if (source !== undefined) throw new ApiError('CROSS_ORIGIN', crossOrigin(source));
  const trait = reads ? undefined : browserTrait(request.headers);
  if (trait !== undefined) throw new ApiError('CROSS_ORIGIN', notMeant(trait));
}

/**
 * Handles one request to the API, after the guards: permissions, route, role, body, action.
 *
 * @param method `undefined`: a method that the API does not have
 */
export async function dispatch(
  dashboard: Dashboard,
  method: Method | undefined,
  request: HttpRequest,
): Promise<Outgoing> {
  const recording = method === 'GET' ? undefined : record(dashboard, method, request);
  try {
    return await perform(dashboard, method, request, recording);
  } catch (error) {
    await recording?.failed(error);
    throw error;
  } finally {
    // A refused request changes nothing, and must not empty the cache.
    if (recording?.hasBegun) dashboard.forget();
  }
}

/** Changes are recorded, including refused ones. A request without a route is not. */
function record(dashboard: Dashboard, method: Method | undefined, request: HttpRequest): Recording | undefined {
  const path = segmentsOf(request);
  const match = method && path && router.match(method, path);
  return match && dashboard.recorder.open(actionOf(match.route), targetOf(match.route, match.params), request);
}

async function perform(
  dashboard: Dashboard,
  method: Method | undefined,
  request: HttpRequest,
  recording: Recording | undefined,
): Promise<Outgoing> {
  requireOwnSite(dashboard, request);
  const permissions = await requirePermissions(dashboard, request);
  if (method !== 'GET' && dashboard.settings.readOnly) throw new ApiError('READ_ONLY', readOnlyMode(request.method));
  const { route, params } = find(method, request);
  const role = requireRole(permissions, route, params);
  const body = await readBody(route, request);
  requireRoleInTarget(permissions, route, body);
  const query = canonicalQuery(route.query ?? [], queryOf(request.originalUrl));
  const checked: ApiRequest = { params, query, body, role, permissions, url: pathOf(request.originalUrl) };
  const content = await (recording ? change(dashboard, route, checked, recording) : read(dashboard, route, checked));
  return { status: statusOf(route), ...content };
}

/**
 * A body may name a second queue, in which the request acts, too.
 *
 * @throws QueueNotFoundError, ApiError
 */
function requireRoleInTarget(permissions: Permissions, route: Route, body: unknown): void {
  const { queue } = (body ?? {}) as { queue?: unknown };
  if (typeof queue === 'string') requireRoleIn(permissions, queue, roleFor(route));
}

function find(method: Method | undefined, request: HttpRequest): Match {
  const path = segmentsOf(request);
  const match = method && path && router.match(method, path);
  if (match) return match;
  const where = path && router.knows(path) ? `${request.method} is not for` : 'there is nothing at';
  throw new ApiError('NOT_FOUND', `${where} this path; openapi.json lists all paths`);
}

/** Records the action first, so that the trail has it even if the process ends. */
async function change(dashboard: Dashboard, route: Route, request: ApiRequest, recording: Recording): Promise<Content> {
  const target = targetOf(route, request.params);
  recording.add(detailsOf(actionOf(route), target, request.body, request.query));
  if (route.queueOf) {
    const queue = await route.queueOf(dashboard, request);
    recording.add({ queue });
    requireRoleIn(request.permissions, queue, roleFor(route));
  }
  await recording.begin();
  const value = await route.handle(dashboard, request);
  await recording.done(effectsOf(value));
  return route.reply ? json(value) : {};
}

/**
 * Equal requests with equal permissions share a reply until the next refresh. A reply that is not
 * cached is still shared while it is pending.
 */
function read(dashboard: Dashboard, route: Route, request: ApiRequest): Promise<Content> {
  const key = JSON.stringify([
    route.path,
    Object.values(request.params),
    request.query.toString(),
    request.permissions.key,
  ]);
  const make = async (): Promise<Content> => {
    const value = await route.handle(dashboard, request);
    return route.attachment ? attachment(value as Attachment) : json(value);
  };
  return dashboard.replies.get(key, make, isCached(route, request));
}
