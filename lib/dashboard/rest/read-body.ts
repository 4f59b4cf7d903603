import type { Readable } from 'node:stream';
import { noBodyParser, notJson, tooLarge } from '../dashboard.messages.js';
import { ApiError, BadRequest } from './api-error.js';
import { refusalOf } from './body-errors.js';
import { JSON_TYPE } from './cross-origin.js';
import type { HttpRequest } from './http-request.js';
import { sizeExceeds } from './json-size.js';
import type { Route } from './route.js';
import { checkValue } from './schema.js';

/**
 * As in asynqmon. Express itself takes only 100 kB by default: `app.useBodyParser('json', { limit:
 * '1mb' })`.
 */
const MAX_BODY_BYTES = 1_000_000;

/**
 * The valid body, if the route has one. Only JSON, which a form of another site cannot send.
 *
 * @throws ApiError
 */
export async function readBody(route: Route, request: HttpRequest): Promise<unknown> {
  const refusal = refusalOf(request);
  if (refusal) throw refusal;
  requireSize(request);
  if (!route.body) return undefined;
  if (!(await isSent(request))) {
    if (route.bodyOptional) return undefined;
    throw new BadRequest(`a JSON body is needed: ${route.body.required?.join(', ') ?? 'an object'}`);
  }
  const { headers, body } = request;
  const type = headers['content-type'];
  if (!type || !JSON_TYPE.test(type)) throw new ApiError('UNSUPPORTED_TYPE', notJson(type ?? 'of no type'));
  if (body === undefined) throw new ApiError('UNSUPPORTED_TYPE', noBodyParser);
  checkValue(body, route.body, 'the body');
  return body;
}

const lengthOf = ({ headers }: HttpRequest): number => Number(headers['content-length'] ?? 0);

/** Content-Length says nothing about chunked or compressed bodies. */
function requireSize(request: HttpRequest): void {
  const { headers, body } = request;
  const isExact = headers['content-length'] !== undefined && headers['content-encoding'] === undefined;
  const isLarge = isExact ? lengthOf(request) > MAX_BODY_BYTES : sizeExceeds(body, MAX_BODY_BYTES);
  if (isLarge) throw new ApiError('TOO_LARGE', tooLarge(MAX_BODY_BYTES));
}

/** HTTP/1.1 announces a body with one of two headers; HTTP/2 needs neither. */
async function isSent(request: HttpRequest): Promise<boolean> {
  const { headers, body } = request;
  if (lengthOf(request) > 0 || headers['transfer-encoding'] !== undefined) return true;
  const raw = (request.raw ?? request) as Readable & { readonly stream?: { readonly endAfterHeaders?: boolean } };
  if (raw.stream?.endAfterHeaders !== false) return false;
  return body !== undefined || hasBytes(raw);
}

/** Whether an unread stream has data. */
function hasBytes(stream: Readable): Promise<boolean> {
  if (stream.readableEnded || stream.destroyed) return Promise.resolve(false);
  return new Promise((resolve) => {
    stream.once('data', () => resolve(true));
    for (const end of ['end', 'close', 'error']) stream.once(end, () => resolve(false));
  });
}
