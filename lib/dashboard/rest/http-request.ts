import type { IncomingHttpHeaders } from 'node:http';

/**
 * The name of the wildcard in the API's paths on Express. No other route of an application uses it.
 */
export const API_WILDCARD = 'asynqDashboardPath';

interface Peer {
  readonly remoteAddress?: string;
}

/** What the requests of Express and Fastify have in common, and where they differ. */
export interface HttpRequest {
  readonly method: string;
  readonly headers: IncomingHttpHeaders;
  /** Fastify: as routed, after `rewriteUrl`. */
  readonly url: string;
  /** As sent by the client. */
  readonly originalUrl: string;
  readonly body?: unknown;
  /** Fastify: Node's own request. */
  readonly raw?: { readonly socket?: Peer };
  /** Express. */
  readonly socket?: Peer;
  /** Express: the decoded segments of the wildcard. */
  readonly params?: { readonly [API_WILDCARD]?: readonly string[]; readonly path?: readonly string[] };
  /** Fastify. */
  readonly routeOptions?: { readonly url?: string };
}

/** In front of the path, as a proxy may send it; Fastify routes such a request like any other. */
const AUTHORITY = /^https?:\/\/[^/?#]*/i;

/**
 * The decoded segments below the API; `undefined` if one cannot be decoded. A name may contain an
 * encoded slash, which Fastify's own wildcard has already decoded, so the URL is read instead.
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
