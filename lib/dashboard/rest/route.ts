import type { Dashboard } from '../dashboard.js';
import type { DashboardRole, Permissions } from '../permissions.js';
import type { Schema } from './schema.js';

export type Method = 'GET' | 'POST' | 'DELETE';

/** One request, after every check that concerns all requests. */
export interface ApiRequest {
  /** By the names in the route's path, decoded. */
  readonly params: Readonly<Record<string, string>>;
  /** The parameters that the route declares, in its order, each in its one spelling. */
  readonly query: URLSearchParams;
  /** Fits the route's `body`; `undefined` when none was sent. */
  readonly body: unknown;
  /** In the queue that the path names; elsewhere the greatest the sender has. */
  readonly role: DashboardRole;
  readonly permissions: Permissions;
  /** Below the API: `live?since=3`. */
  readonly url: string;
}

/** A query parameter. A handler sees those only that its route declares, so that others cannot make it another question. */
export interface QueryParameter {
  readonly name: string;
  readonly description: string;
  readonly integer?: boolean;
  /**
   * The one spelling of all values that mean the same; `undefined` where it means what its absence means. Default: the first value that is
   * given, unless it is empty.
   *
   * @param query the first values of the route's parameters, as they were sent
   */
  readonly canonical?: (query: URLSearchParams) => string | number | undefined;
}

/** One line of the table that requests are routed by, and that the OpenAPI document is made from. */
export interface Route {
  readonly method: Method;
  /** Segments below the API; `{name}` is a parameter, and what follows its colon a verb: `queues/{queue}:pause`. */
  readonly path: string;
  /** A few words, for the document. */
  readonly summary: string;
  /** Default: `view` for GET, `destroy` for DELETE, else `act`. A handler can ask for more, where it depends on the body. */
  readonly role?: DashboardRole;
  /**
   * Whose role counts, where the path names no queue. `general`: what is asked for belongs to no queue. `filtered`: it belongs to several;
   * the handler leaves out those that the sender may not see, and checks the role in those it changes. Default `general`.
   */
  readonly scope?: 'general' | 'filtered';
  /**
   * The queue in which it changes something, where the path does not say so; asked for before anything is recorded or done.
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
  /** Whether a GET is answered with a file: the handler returns an Attachment. */
  readonly attachment?: boolean;
  /** Whether the answer to a GET is used again for others, until the next refresh; or for which calls. Default true. */
  readonly cached?: boolean | ((request: ApiRequest) => boolean);
  readonly handle: (dashboard: Dashboard, request: ApiRequest) => Promise<unknown> | unknown;
}

const BY_METHOD: Readonly<Record<Method, DashboardRole>> = { GET: 'view', POST: 'act', DELETE: 'destroy' };

export const roleFor = (route: Route): DashboardRole => route.role ?? BY_METHOD[route.method];

export const isCached = ({ cached = true }: Route, request: ApiRequest): boolean =>
  typeof cached === 'function' ? cached(request) : cached;

export const statusOf = (route: Route): number => route.status ?? (route.reply || route.attachment ? 200 : 204);
