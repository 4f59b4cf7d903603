import type { IncomingHttpHeaders } from 'node:http';
import { isIP } from 'node:net';

const OWN_SITE = ['same-origin', 'none'];

/**
 * Where a request comes from that a page of another site has a browser send; `undefined` for every other. Browsers say so
 * themselves (Sec-Fetch-Site); those that do not, on plain HTTP, name the page's origin. What says neither is no browser.
 *
 * @param reads whether the request only reads: navigation may lead here from anywhere
 * @param trusted origins that count as ours
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
  // A page that reads names its origin only where it would read across sites, which an application may allow all of them.
  const host = requestedHost(headers)?.toLowerCase();
  return origin === undefined || (host !== undefined && hostOf(origin) === host) ? undefined : origin;
}

/** The header of a change that is meant. Its value does not count. */
const CONSOLE_HEADER = 'x-asynq-console';

export const JSON_TYPE = /^application\/json\s*(;|$)/i;

/** Credentials that a browser adds by itself; it never does so with a token. */
const AMBIENT = /^(?:basic|digest|negotiate|ntlm)\b/i;

/**
 * What shows that a browser may have sent a change for a page; `undefined` when nothing does, or when it carries what no page of another site
 * can have sent without asking first: the header of the console, or the content type of JSON.
 */
export function browserTrait(headers: IncomingHttpHeaders): string | undefined {
  if (headers[CONSOLE_HEADER] !== undefined || JSON_TYPE.test(headers['content-type'] ?? '')) return undefined;
  const named = ['cookie', 'origin', 'referer', 'sec-fetch-site'].find((name) => headers[name] !== undefined);
  if (named !== undefined) return `the header ${named}`;
  if (AMBIENT.test(headers.authorization ?? '')) return 'credentials that browsers add by themselves';
  return /^mozilla\//i.test(headers['user-agent'] ?? '') ? 'the name of a browser' : undefined;
}

/** HTTP/2 has no Host header, but a field that says the same. */
export const requestedHost = (headers: IncomingHttpHeaders): string | undefined =>
  single(headers.host ?? headers[':authority']);

const HOST = /^(?:\[([\da-f:.]+)\]|([^:[\]]+))(?::\d+)?$/i;

/**
 * Whether a page of another site cannot have come by this name: whoever owns a name can have it lead to this machine (DNS rebinding), and
 * then is the same site for a browser; but nobody owns an address, nor `localhost`.
 */
export function isUnownedHost(host: string): boolean {
  const [, bracketed, plain = ''] = HOST.exec(host) ?? [];
  return isIP(bracketed ?? plain) > 0 || /^(?:.+\.)?localhost$/i.test(plain);
}

/** Whether the host is that of a trusted origin. */
export const isTrustedHost = (host: string, trusted: ReadonlySet<string>): boolean =>
  [...trusted].some((origin) => hostOf(origin) === host.toLowerCase());

/** Of a header given twice, none: it must not be read in one way here and in another elsewhere. */
const single = (value: string | string[] | undefined): string | undefined =>
  Array.isArray(value) ? value.join(', ') : value;

/** Of an origin as browsers write it, and of nothing else that leads to the same host. */
const hostOf = (origin: string): string | undefined => {
  const url = URL.canParse(origin) ? new URL(origin) : undefined;
  return url?.origin === origin ? url.host : undefined;
};
