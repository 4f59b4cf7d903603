import type { IncomingHttpHeaders } from 'node:http';

/** The wildcard in the paths of the API on Express: no other route of an application has one of this name. */
export const API_WILDCARD = 'asynqDashboardPath';

interface Peer {
  readonly remoteAddress?: string;
}

/** What Express' and Fastify's requests have in common, and where they differ. */
export interface HttpRequest {
  readonly method: string;
  readonly headers: IncomingHttpHeaders;
  /** Fastify: as it was routed, after `rewriteUrl`. */
  readonly url: string;
  /** As it was sent, whatever is mounted where. */
  readonly originalUrl: string;
  readonly body?: unknown;
  /** Fastify: Node's own request. */
  readonly raw?: { readonly socket?: Peer };
  /** Express. */
  readonly socket?: Peer;
  /** Express: the segments of the wildcard, decoded. */
  readonly params?: { readonly [API_WILDCARD]?: readonly string[]; readonly path?: readonly string[] };
  /** Fastify. */
  readonly routeOptions?: { readonly url?: string };
}

/** In front of the path, as a proxy may send it; Fastify routes such a request like any other. */
const AUTHORITY = /^https?:\/\/[^/?#]*/i;

/**
 * The segments below the API, decoded, and percent signs in them not decoded twice; `undefined` when one cannot be decoded. A name
 * may hold a slash, which then is encoded; Fastify's own parameter no longer tells it from others.
 */
export function segmentsOf(request: HttpRequest): readonly string[] | undefined {
  const { routeOptions, params, url } = request;
  const segments = params?.[API_WILDCARD];
  if (Array.isArray(segments)) return segments as readonly string[];
  const above = (routeOptions?.url ?? '').split('/').length - 1;
  try {
    return pathOf(url.replace(AUTHORITY, '')).split('/').slice(above).map(decodeURIComponent);
  } catch {
    return undefined;
  }
}

/** Without the query. */
export const pathOf = (url: string): string => url.split(/[?#]/, 1)[0]!;

export const queryOf = (url: string): URLSearchParams => new URLSearchParams(url.slice(pathOf(url).length));
