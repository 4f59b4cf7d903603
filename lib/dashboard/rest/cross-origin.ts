import type { IncomingHttpHeaders } from 'node:http';

const OWN_SITE = ['same-origin', 'none'];

/**
 * Where a request comes from that a page of another site has a browser send; `undefined` for every other. Browsers say so
 * themselves (Sec-Fetch-Site); those that do not, on plain HTTP, name the page's origin. What says neither is no browser.
 *
 * @param reads whether the request only reads, as navigation does: a link may lead here from anywhere
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
  if (origin === undefined || reads) return undefined;
  return hostOf(origin) === single(headers.host)?.toLowerCase() ? undefined : origin;
}

/** Of a header given twice, none: it must not be read in one way here and in another elsewhere. */
const single = (value: string | string[] | undefined): string | undefined =>
  Array.isArray(value) ? value.join(', ') : value;

const hostOf = (origin: string): string | undefined => (URL.canParse(origin) ? new URL(origin).host : undefined);
