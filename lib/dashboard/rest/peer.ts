import type { HttpRequest } from './http-request.js';

/** Headers that proxies add, besides `x-forwarded-…`. */
const FORWARDED = new Set(['forwarded', 'via', 'x-real-ip', 'x-client-ip', 'true-client-ip', 'cf-connecting-ip']);

const LOOPBACK = /^(?:::1|(?:::ffff:)?127(?:\.\d{1,3}){3})$/i;

/** Where a request comes from if not from this machine, else `undefined`. */
export function foreignPeer({ headers, raw, socket }: HttpRequest): string | undefined {
  const address = (raw?.socket ?? socket)?.remoteAddress;
  // A Unix domain socket has no address, and usually serves a proxy.
  if (address === undefined) return 'through a socket without an address';
  if (!LOOPBACK.test(address)) return `from ${address}`;
  const header = Object.keys(headers).find((name) => FORWARDED.has(name) || name.startsWith('x-forwarded-'));
  return header === undefined ? undefined : `by a proxy (${header})`;
}
