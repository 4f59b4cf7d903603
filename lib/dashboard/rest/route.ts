import type { Dashboard } from '../dashboard.js';
import type { DashboardRole, Permissions } from '../permissions.js';
import type { Schema } from './schema.js';

export type Method = 'GET' | 'POST' | 'DELETE';

/** A request after all general checks. */
export interface ApiRequest {
  /** By the names in the route's path, decoded. */
  readonly params: Readonly<Record<string, string>>;
  /** The declared parameters, in canonical form. */
  readonly query: URLSearchParams;
  /** Matches the route's `body`; `undefined` if none was sent. */
  readonly body: unknown;
  /** The role in the queue of the path; without a queue, the sender's highest role. */
  readonly role: DashboardRole;
  readonly permissions: Permissions;
  /** Below the API: `live?since=3`. */
  readonly url: string;
}

/** A query parameter. Handlers only see declared parameters, so others cannot defeat the cache. */
export interface QueryParameter {
  readonly name: string;
  readonly description: string;
  readonly integer?: boolean;
  /**
   * The canonical form of a value; `undefined` for the default. By default the first value, unless
   * it is empty.
   *
   * @param query the first value of each declared parameter, as sent
   */
  readonly canonical?: (query: URLSearchParams) => string | number | undefined;
}

/** One route of the API, also a source of the OpenAPI document. */
export interface Route {
  readonly method: Method;
  /**
   * Segments below the API: `{name}` is a parameter, and a colon begins a verb:
   * `queues/{queue}:pause`.
   */
  readonly path: string;
  /** A few words, for the OpenAPI document. */
  readonly summary: string;
  /**
   * Default: `view` for GET, `destroy` for DELETE, else `act`. A handler may require more,
   * depending on the body.
   */
  readonly role?: DashboardRole;
  /**
   * Which role counts if the path names no queue. `general`: the reply belongs to no queue.
   * `filtered`: it belongs to several; the handler leaves out queues that the sender may not see,
   * and checks the role where it changes something. Default `general`.
   */
  readonly scope?: 'general' | 'filtered';
  /**
   * The queue that the request changes, if the path does not name it; called before the action is
   * recorded.
   *
   * @throws ApiError when there is none, or the sender may not see it
   */
  readonly queueOf?: (dashboard: Dashboard, request: ApiRequest) => Promise<string>;
  readonly query?: readonly QueryParameter[];
  readonly body?: Schema;
  readonly bodyOptional?: boolean;
  /** Default 200, or 204 without a `reply`. */
  readonly status?: 200 | 201;
  readonly reply?: Schema;
  /** Whether the handler returns an Attachment. */
  readonly attachment?: boolean;
  /** Whether replies to a GET are reused until the next refresh. Default true. */
  readonly cached?: boolean | ((request: ApiRequest) => boolean);
  readonly handle: (dashboard: Dashboard, request: ApiRequest) => Promise<unknown> | unknown;
}

const BY_METHOD: Readonly<Record<Method, DashboardRole>> = { GET: 'view', POST: 'act', DELETE: 'destroy' };

export const roleFor = (route: Route): DashboardRole => route.role ?? BY_METHOD[route.method];

export const isCached = ({ cached = true }: Route, request: ApiRequest): boolean =>
  typeof cached === 'function' ? cached(request) : cached;

export const statusOf = (route: Route): number => route.status ?? (route.reply || route.attachment ? 200 : 204);
