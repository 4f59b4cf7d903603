import type { IncomingHttpHeaders } from 'node:http';
import { isIP } from 'node:net';

const OWN_SITE = ['same-origin', 'none'];

/**
 * Where a request comes from if a page of another site made the browser send it, else `undefined`.
 * Browsers say so (Sec-Fetch-Site), or send the origin of the page on plain HTTP. A client that
 * sends neither is not a browser.
 *
 * @param reads whether the request only reads: navigation may come from anywhere
 * @param trusted origins that count as our own
 */
export function foreignSource(
  headers: IncomingHttpHeaders,
  reads: boolean,
  trusted: ReadonlySet<string>,
): string | undefined {
  const origin = single(headers.origin);
  if (origin !== undefined && trusted.has(origin)) return undefined;
  const site = single(headers['sec-fetch-site']);
  if (site !== undefined) {
    if (OWN_SITE.includes(site) || (reads && single(headers['sec-fetch-mode']) === 'navigate')) return undefined;
    return origin ?? site;
  }
  // A GET has an origin only for cross-site reads, which an application may allow everywhere.
  const host = requestedHost(headers)?.toLowerCase();
  return origin === undefined || (host !== undefined && hostOf(origin) === host) ? undefined : origin;
}

/** Shows that a change is intended. The value does not matter. */
const CONSOLE_HEADER = 'x-asynq-console';

export const JSON_TYPE = /^application\/json\s*(;|$)/i;

/** Credentials that a browser sends by itself; it never sends a token. */
const AMBIENT = /^(?:basic|digest|negotiate|ntlm)\b/i;

/**
 * The trait that shows that a browser may have sent the change for a page; `undefined` if there is
 * none, or if the request has a header that other sites cannot send without a preflight.
 */
export function browserTrait(headers: IncomingHttpHeaders): string | undefined {
  if (headers[CONSOLE_HEADER] !== undefined || JSON_TYPE.test(headers['content-type'] ?? '')) return undefined;
  const named = ['cookie', 'origin', 'referer', 'sec-fetch-site'].find((name) => headers[name] !== undefined);
  if (named !== undefined) return `the header ${named}`;
  if (AMBIENT.test(headers.authorization ?? '')) return 'credentials that browsers add by themselves';
  return /^mozilla\//i.test(headers['user-agent'] ?? '') ? 'the name of a browser' : undefined;
}

/** In HTTP/2 the pseudo-header `:authority` replaces Host. */
export const requestedHost = (headers: IncomingHttpHeaders): string | undefined =>
  single(headers.host ?? headers[':authority']);

const HOST = /^(?:\[([\da-f:.]+)\]|([^:[\]]+))(?::\d+)?$/i;

/**
 * Whether no other site can use this host name. With DNS rebinding, the owner of a name can make it
 * resolve to this machine. Nobody owns an IP address or `localhost`.
 */
export function isUnownedHost(host: string): boolean {
  const [, bracketed, plain = ''] = HOST.exec(host) ?? [];
  return isIP(bracketed ?? plain) > 0 || /^(?:.+\.)?localhost$/i.test(plain);
}

/** Whether the host belongs to a trusted origin. */
export const isTrustedHost = (host: string, trusted: ReadonlySet<string>): boolean =>
  [...trusted].some((origin) => hostOf(origin) === host.toLowerCase());

/** Joins a repeated header, so that it matches nothing. */
const single = (value: string | string[] | undefined): string | undefined =>
  Array.isArray(value) ? value.join(', ') : value;

/** The host of an origin in the exact form that browsers send. */
const hostOf = (origin: string): string | undefined => {
  const url = URL.canParse(origin) ? new URL(origin) : undefined;
  return url?.origin === origin ? url.host : undefined;
};
