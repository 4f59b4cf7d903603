import { gzipSync } from 'node:zlib';
import type { Dashboard } from './dashboard.js';
import { pageMissing } from './dashboard.messages.js';
import { ApiError, toErrorReply } from './rest/api-error.js';
import { requireOwnHost, requireOwnSite, requirePermissions } from './rest/dispatcher.js';
import { type HttpRequest, pathOf } from './rest/http-request.js';
import { type Outgoing, plain } from './rest/responder.js';
import { type WebAsset, webAsset } from './web-assets.js';

/** Nothing from another host, nothing inline, no embedding in frames. */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  // Trusted Types: no text may become markup or script.
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join('; ');

/** Browser features that the page does not use. */
const UNUSED = ['camera', 'display-capture', 'fullscreen', 'geolocation', 'gyroscope', 'accelerometer', 'magnetometer']
  .concat(['hid', 'microphone', 'midi', 'payment', 'serial', 'usb', 'screen-wake-lock', 'xr-spatial-tracking'])
  .concat(['publickey-credentials-get', 'clipboard-read', 'encrypted-media', 'picture-in-picture', 'autoplay']);

const PAGE_HEADERS = {
  'Cache-Control': 'no-cache',
  'Content-Security-Policy': POLICY,
  // Isolates the page from windows that open it or that it opens.
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Permissions-Policy': UNUSED.map((name) => `${name}=()`).join(', '),
};

/** The page refers to this file by name, without a hash of its content. */
const LICENSES = 'licenses.txt';

const ASSET = /\/assets\/([\w][\w.-]*)$/;

/**
 * Serves the page and its files. All addresses are relative, so the page works below any prefix and
 * behind any proxy. Errors of guards go to the application's filters, which may redirect to a
 * login.
 */
export async function servePage(dashboard: Dashboard, request: HttpRequest): Promise<Outgoing> {
  try {
    return await find(dashboard, request);
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    const { status, text } = toErrorReply(error);
    return { status, ...plain(text) };
  }
}

async function find(dashboard: Dashboard, request: HttpRequest): Promise<Outgoing> {
  const path = pathOf(request.originalUrl);
  const asset = ASSET.exec(path)?.[1];
  if (asset !== undefined) requireOwnSite(dashboard, request);
  else requireOwnHost(dashboard, request);
  await requirePermissions(dashboard, request);
  if (asset !== undefined) return serveAsset(request, asset);
  if (!isRoot(request)) return { status: 404, ...plain('there is nothing here') };
  if (!path.endsWith('/')) return redirect(request.originalUrl, path);
  const page = webAsset('index.html');
  if (!page) return { status: 503, ...plain(pageMissing) };
  return serve(request, page, PAGE_HEADERS);
}

const isRoot = ({ params }: HttpRequest): boolean => {
  const rest = params?.path ?? (params as Record<string, string> | undefined)?.['*'] ?? '';
  return rest.length === 0;
};

/** Relative, because a proxy may have removed the front of the path. */
function redirect(url: string, path: string): Outgoing {
  const name = path.slice(path.lastIndexOf('/') + 1);
  return { status: 307, headers: { Location: `./${name}/${url.slice(path.length)}` } };
}

function serveAsset(request: HttpRequest, name: string): Outgoing {
  const asset = webAsset(`assets/${name}`);
  if (!asset) return { status: 404, ...plain('there is no such file') };
  const kept = name === LICENSES ? 'no-cache' : 'private, max-age=31536000, immutable';
  const fixed = { 'Cache-Control': kept, Vary: 'Accept-Encoding' };
  if (!takesGzip(request)) return serve(request, asset, fixed);
  return serve(request, compressed(asset), { 'Content-Encoding': 'gzip', ...fixed });
}

/** Compresses to a third of the bytes, without a middleware of the application. */
const takesGzip = ({ headers }: HttpRequest): boolean =>
  /(?:^|,)\s*gzip\s*(?:;(?!\s*q=0(?:\.0*)?\s*(?:,|$))|,|$)/i.test(String(headers['accept-encoding'] ?? ''));

const COMPRESSED = new Map<string, WebAsset>();

function compressed({ body, type, etag }: WebAsset): WebAsset {
  const known = COMPRESSED.get(etag) ?? {
    body: gzipSync(body, { level: 9 }),
    type,
    etag: etag.replace(/"$/, '-gzip"'),
  };
  COMPRESSED.set(etag, known);
  return known;
}

function serve(
  { headers }: HttpRequest,
  { body, type, etag }: { body: Buffer; type: string; etag: string },
  more: Record<string, string>,
): Outgoing {
  const fixed = { ETag: etag, ...more };
  if (headers['if-none-match'] === etag) return { status: 304, headers: fixed };
  return { status: 200, headers: { 'Content-Type': type, ...fixed }, body };
}
